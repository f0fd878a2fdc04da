"""Reads a file as a `Transcript`: decodes it, recognizes its format and parses it."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from memorybus_console.operations.ingest.reading import locomo
from memorybus_console.operations.ingest.reading.json_files import (
    JsonLine,
    decoded_lines,
    parse_file,
)
from memorybus_console.operations.ingest.reading.messages import parse_messages
from memorybus_console.operations.ingest.reading.model import (
    ReadingOptions,
    Transcript,
    TranscriptError,
)
from memorybus_console.operations.ingest.report import LeftOut

_DEFAULT_OPTIONS = ReadingOptions()


def read_transcript(path: Path, options: ReadingOptions = _DEFAULT_OPTIONS) -> Transcript:
    """Read and parse one file.

    Raises:
        TranscriptError: the file cannot be read, or nothing in it is a conversation.
    """
    try:
        with path.open("rb") as file:
            return _parse(file, str(path), path.stem, options)
    except OSError as error:
        raise TranscriptError(error.strerror or str(error), str(path)) from error


def parse_transcript(
    data: bytes, name: str, stem: str, options: ReadingOptions = _DEFAULT_OPTIONS
) -> Transcript:
    """Parse a file's bytes: LoCoMo, a JSON document of messages, or one JSON value a line.

    What cannot be read in it is left out, and noted in `Transcript.left_out` with its place.

    Args:
        data: the bytes; see `decoded_lines`.
        name: the file's name as errors show it.
        stem: used to name the sessions that the file does not name.
        options: how times are read, and how large a turn may be.

    Raises:
        TranscriptError: nothing in it can be read; the message has the first place and the reason.
    """
    return _parse(io.BufferedReader(io.BytesIO(data)), name, stem, options)


def _parse(file: io.BufferedReader, name: str, stem: str, options: ReadingOptions) -> Transcript:
    left_out = LeftOut()
    parsed = parse_file(decoded_lines(file, name), name, left_out)
    samples = [line for line in parsed.lines if locomo.is_sample(line.value)]
    others = [line for line in parsed.lines if not locomo.is_sample(line.value)]
    transcripts = [
        *_parse_samples(samples, name, stem, options, left_out, single=len(parsed.lines) == 1),
        parse_messages(parsed._replace(lines=others), name, stem, options, left_out),
    ]
    sessions = tuple(one for transcript in transcripts for one in transcript.conversations)
    if not sessions:
        _refuse(name, left_out, "session with an utterance" if samples else "message with content")
    skipped = sum(transcript.skipped for transcript in transcripts)
    return Transcript(conversations=sessions, skipped=skipped, left_out=left_out)


def _parse_samples(
    samples: Sequence[JsonLine],
    name: str,
    stem: str,
    options: ReadingOptions,
    left_out: LeftOut,
    *,
    single: bool,
) -> Iterator[Transcript]:
    """Yield the LoCoMo samples of a file; a single one is named by the file alone."""
    for line in samples:
        place = line._replace(where=name) if single else line
        own = stem if single else f"{stem}-{line.number}"
        yield locomo.parse_sample(place, name, own, options, left_out)


def _refuse(name: str, left_out: LeftOut, nothing: str) -> NoReturn:
    """Refuse a file of which nothing can be read, by the first place that cannot."""
    for refusal in left_out.named:
        raise TranscriptError(refusal.why.removeprefix(f"{refusal.place}: "), refusal.place)
    raise TranscriptError(f"no {nothing} in it", name)
