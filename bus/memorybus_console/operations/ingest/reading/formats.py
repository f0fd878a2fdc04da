"""The table of formats: by what each is recognised, and how its lines become messages.

What `unfolding` reads as it is needs no function. A file that no row knows is named for what it
looks like.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from memorybus_console.operations.ingest.reading import claude_code, codex, locomo
from memorybus_console.operations.ingest.reading.json_files import JsonLine
from memorybus_console.operations.ingest.report import LeftOut

PlainLines: TypeAlias = Callable[[Iterable[JsonLine], LeftOut], Iterable[JsonLine]]


class Format(NamedTuple):
    """A format of conversations.

    Attributes:
        name: its name, in the report.
        is_value: whether a JSON value of a file is of this format.
        plain_lines: makes messages of lines that are none.
    """

    name: str
    is_value: Callable[[Any], bool]
    plain_lines: PlainLines = lambda lines, _: lines


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
    known = (one for line in lines for one in FORMATS if one.is_value(line.value))
    return next(known, MESSAGES)


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
        lines: its JSON values.
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
