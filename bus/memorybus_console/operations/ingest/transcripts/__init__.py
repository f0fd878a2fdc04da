"""Parses recorded conversations: messages in the forms of many programs, and LoCoMo JSON.

A line that cannot be read is left out and named with its place and the reason; a file of which
nothing can be read is a `TranscriptError`.
"""

from memorybus_console.operations.ingest.transcripts.model import (
    ReadingOptions,
    RecordedSession,
    RecordedTurn,
    Transcript,
    TranscriptError,
)
from memorybus_console.operations.ingest.transcripts.reading import (
    parse_transcript,
    read_transcript,
)

__all__ = [
    "ReadingOptions",
    "RecordedSession",
    "RecordedTurn",
    "Transcript",
    "TranscriptError",
    "parse_transcript",
    "read_transcript",
]
