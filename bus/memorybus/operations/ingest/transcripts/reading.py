"""Reads a file as a `Transcript`: recognizes its format, and parses JSON with line numbers."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memorybus.operations.ingest.transcripts import locomo, openai
from memorybus.operations.ingest.transcripts.model import Transcript, TranscriptError
from memorybus.operations.ingest.transcripts.openai import JsonLine


def read_transcript(path: Path) -> Transcript:
    """Read and parse one file.

    Raises:
        TranscriptError: the file cannot be read, or is not a conversation.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TranscriptError(error.strerror or str(error), str(path)) from error
    return parse_transcript(data, str(path), path.stem)


def parse_transcript(data: bytes, name: str, stem: str) -> Transcript:
    """Parse a file's bytes: LoCoMo, a JSON document of messages, or one JSON value a line.

    Args:
        data: the bytes, UTF-8 with or without a byte order mark.
        name: the file's name as errors show it.
        stem: used to name the sessions that the file does not name.

    Raises:
        TranscriptError: the bytes cannot be parsed; the message has ``file:line`` and the reason.
    """
    document = _parse_document(data)
    samples = document if isinstance(document, list) else [document]
    if any(locomo.is_sample(sample) for sample in samples):
        return _parse_samples(samples, name, stem)
    if isinstance(document, list):
        found = openai.parse_messages(_number_items(document, name), stem)
    elif isinstance(document, dict):
        found = openai.parse_document(JsonLine(f"{name}:1", 1, document), stem)
    else:
        found = openai.parse_messages(_parse_lines(data, name), stem)
    if not found.conversations:
        raise TranscriptError("no message with content in it", name)
    return found


def _parse_document(data: bytes) -> Any:
    """Return the whole file as one JSON value, or None if it is not one."""
    try:
        return json.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        return None


def _number_items(document: list[Any], name: str) -> Iterator[JsonLine]:
    for index, value in enumerate(document, 1):
        yield JsonLine(f"{name}: item {index}", index, value)


def _parse_samples(samples: list[Any], name: str, stem: str) -> Transcript:
    parsed = []
    for index, sample in enumerate(samples, 1):
        if not locomo.is_sample(sample):
            raise TranscriptError(f"item {index} is not a LoCoMo sample like the others", name)
        parsed.append(_parse_sample(sample, name, stem, index if len(samples) > 1 else 0))
    conversations = tuple(c for transcript in parsed for c in transcript.conversations)
    if not conversations:
        raise TranscriptError("no session with an utterance in it", name)
    return Transcript(conversations=conversations, skipped=sum(t.skipped for t in parsed))


def _parse_sample(sample: Mapping[str, Any], name: str, stem: str, index: int) -> Transcript:
    where = f"{name}: item {index}" if index else name
    return locomo.parse_sample(sample, where, f"{stem}-{index}" if index else stem)


def _parse_lines(data: bytes, name: str) -> Iterator[JsonLine]:
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if raw.strip():
            yield JsonLine(f"{name}:{number}", number, _parse_line(raw, f"{name}:{number}"))


def _parse_line(raw: bytes, where: str) -> Any:
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise TranscriptError(f"not UTF-8 (byte {error.start + 1} of the line)", where) from error
    except json.JSONDecodeError as error:
        raise TranscriptError(f"not JSON: {error.msg} (column {error.colno})", where) from error
    except (ValueError, RecursionError) as error:
        raise TranscriptError(f"not JSON we can read: {error}", where) from error
