"""Parses recorded conversations: OpenAI-style message JSONL and LoCoMo JSON.

A parser either returns the whole file, or raises `TranscriptError` with the file, the line and the
reason: nothing of a malformed file is published.
"""

from memorybus.operations.ingest.transcripts.model import (
    RecordedSession,
    RecordedTurn,
    Transcript,
    TranscriptError,
)
from memorybus.operations.ingest.transcripts.reading import parse_transcript, read_transcript

__all__ = [
    "RecordedSession",
    "RecordedTurn",
    "Transcript",
    "TranscriptError",
    "parse_transcript",
    "read_transcript",
]
