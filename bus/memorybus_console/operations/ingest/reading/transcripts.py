"""Reads a file as a `Transcript`: unpacks it, recognises its format and parses it.

The table of formats has by what each is recognised, and how its lines become messages. A file that
no row knows is named for what it looks like.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from memorybus_console.operations.ingest.reading import claude_code, codex, locomo
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

PlainLines: TypeAlias = Callable[[Iterable[JsonLine], LeftOut], Iterable[JsonLine]]


class Format(NamedTuple):
    """A format of conversations."""

    name: str
    is_value: Callable[[Any], bool]  # whether a JSON value of a file is of this format
    plain_lines: PlainLines = lambda lines, _: lines  # makes messages of lines that are none


def _has(field: str, kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and isinstance(value.get(field), kind)


def _is_sharegpt(value: Any) -> bool:
    listed = value.get("conversations") if isinstance(value, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    return isinstance(first, dict) and {"from", "value"} <= first.keys()


FORMATS = (
    Format("ChatGPT", _has("mapping", dict)),
    Format("claude.ai", _has("chat_messages", list)),
    Format("Claude Code", claude_code.is_line, claude_code.plain_lines),
    Format("Codex", codex.is_line, codex.plain_lines),
    Format("ShareGPT", _is_sharegpt),
    Format("LoCoMo", locomo.is_sample),
)
MESSAGES = Format("messages", lambda _: True)
"""The format of all other files: messages in the forms of many programs."""

READ = (
    "memorybus reads ChatGPT and claude.ai exports (ZIP or JSON), transcripts of Claude Code and "
    "Codex, ShareGPT, LoCoMo, and messages as JSON or JSON lines; --from reads what other memories "
    "exported"
)


def format_of(lines: Sequence[JsonLine]) -> Format:
    """Return the format of a file, by the first of its values that is of one."""
    matching = (each for line in lines for each in FORMATS if each.is_value(line.value))
    return next(matching, MESSAGES)


_MAGIC = (
    (b"%PDF", "a PDF document"), (b"SQLite format 3", "an SQLite database"),
    (b"PAR1", "a Parquet file"), (b"\x89PNG", "a picture"), (b"\xff\xd8\xff", "a picture"),
    (b"7z\xbc\xaf", "a 7-Zip archive"), (b"Rar!", "a RAR archive"), (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"), (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"<!doctype html", "a web page; name the export's ZIP or its JSON file"),
    (b"<html", "a web page; name the export's ZIP or its JSON file"), (b"<?xml", "XML"),
)  # fmt: skip
_OTHERS = (
    ({"agents", "blocks"}, "an agent file of Letta; give --from letta"),
    ({"results"}, "memories of Mem0; give --from mem0"),
    ({"memory", "user_id"}, "memories of Mem0; give --from mem0"),
    ({"thoughts"}, "thoughts of MentisDB; give --from mentisdb"),
    ({"edges"}, "facts of Zep; give --from zep"),
    ({"observed_id"}, "conclusions of Honcho; give --from honcho"),
    ({"fact_type"}, "facts of Hindsight; give --from hindsight"),
    ({"display", "project"}, "prompts without answers; name files of ~/.claude/projects"),
    ({"session_id", "ts", "text"}, "prompts without answers; name files of ~/.codex/sessions"),
)  # fmt: skip
_MOST_FIELDS = 5


def looks_like(head: bytes, lines: Sequence[JsonLine]) -> str:
    """Return what a file looks like that holds no conversation.

    Args:
        head: its first bytes.
    """
    value = lines[0].value if lines else None
    if isinstance(value, dict):
        others = (words for fields, words in _OTHERS if fields <= value.keys())
        fields = ", ".join(repr(str(name)[:40]) for name in list(value)[:_MOST_FIELDS])
        return next(others, f"JSON with the fields {fields}" if fields else "an empty JSON object")
    if lines:
        return "JSON without objects"
    start = head.lstrip()[:20].lower()
    magic = (words for mark, words in _MAGIC if start.startswith(mark.lower()))
    kind = "binary data" if b"\0" in head else "text without JSON" if start else "an empty file"
    return next(magic, kind)


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
    """Parse a file's bytes, in any format of `FORMATS`.

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
        parts = [
            _parse_member(member, options, left_out) for member in members_of(file, name, stem)
        ]
    except UnreadableInput as error:
        raise TranscriptError(error.why, error.place) from error
    lines = [line for part in parts for line in part.lines]
    transcripts = [transcript for part in parts for transcript in part.transcripts]
    sessions = tuple(
        conversation for transcript in transcripts for conversation in transcript.conversations
    )
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
    own = format_of(parsed.lines)
    plain = list(own.plain_lines(parsed.lines, left_out))
    samples = [line for line in plain if locomo.is_sample(line.value)]
    others = [line for line in plain if not locomo.is_sample(line.value)]
    transcripts = [
        *_parse_samples(samples, name, stem, options, left_out, single=len(plain) == 1),
        parse_messages(parsed._replace(lines=others), name, stem, options, left_out),
    ]
    return _Part(own, parsed.lines, transcripts)


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
