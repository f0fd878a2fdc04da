"""Reads a file as a `Transcript`: decodes it, recognizes its format and parses it."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from memorybus_console.operations.ingest.reading import locomo
from memorybus_console.operations.ingest.reading.formats import (
    MESSAGES,
    READ,
    Format,
    format_of,
    looks_like,
)
from memorybus_console.operations.ingest.reading.json_files import (
    JsonLine,
    Member,
    decoded_lines,
    members_of,
    parse_file,
)
from memorybus_console.operations.ingest.reading.messages import parse_messages
from memorybus_console.operations.ingest.reading.model import (
    ReadingOptions,
    Transcript,
    TranscriptError,
)
from memorybus_console.operations.ingest.report import LeftOut, RefusedInput, UnreadableInput

_DEFAULT_OPTIONS = ReadingOptions()
_HEAD_BYTES = 512


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
    """Parse a file's bytes, in any format of `formats.FORMATS`.

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
    left_out, head = LeftOut(), file.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    try:
        parts = [_parse_member(one, options, left_out) for one in members_of(file, name, stem)]
    except UnreadableInput as error:
        raise TranscriptError(error.why, error.place) from error
    lines = [line for part in parts for line in part.lines]
    transcripts = [transcript for part in parts for transcript in part.transcripts]
    sessions = tuple(one for transcript in transcripts for one in transcript.conversations)
    formats = tuple(dict.fromkeys(part.format.name for part in parts))
    # A transcript of notes alone is read, and has nothing to publish.
    only_notes = left_out.dropped and not left_out.unread and MESSAGES.name not in formats
    if not sessions and not only_notes:
        nothing = "session with an utterance" if "LoCoMo" in formats else "message with content"
        _refuse(name, left_out, f"no {nothing} in it", looks_like(head, lines))
    skipped = sum(transcript.skipped for transcript in transcripts)
    return Transcript(conversations=sessions, skipped=skipped, left_out=left_out, formats=formats)


class _Part(NamedTuple):
    format: Format
    lines: list[JsonLine]
    transcripts: list[Transcript]


def _parse_member(member: Member, options: ReadingOptions, left_out: LeftOut) -> _Part:
    _, name, stem = member
    parsed = parse_file(decoded_lines(member.file, name), name, left_out)
    known = format_of(parsed.lines)
    plain = list(known.plain_lines(parsed.lines, left_out))
    samples = [line for line in plain if locomo.is_sample(line.value)]
    others = [line for line in plain if not locomo.is_sample(line.value)]
    transcripts = [
        *_parse_samples(samples, name, stem, options, left_out, single=len(plain) == 1),
        parse_messages(parsed._replace(lines=others), name, stem, options, left_out),
    ]
    return _Part(known, parsed.lines, transcripts)


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


def _refuse(name: str, left_out: LeftOut, nothing: str, kind: str) -> NoReturn:
    """Refuse a file of which nothing can be read, by the first place that cannot."""
    first = next(iter(left_out.named), RefusedInput(name, nothing, name))
    why = first.why.removeprefix(f"{first.place}: ")
    raise TranscriptError(f"{why}; the file looks like {kind}. {READ}", first.place)
