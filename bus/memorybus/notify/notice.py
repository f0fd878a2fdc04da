"""What a webhook and a command get: one JSON object for all that is new; pure.

`text` and `title` are for people, in services that show one field. They notify nobody beyond their
channel and are no mark-up: what was found may quote hostile text.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from memorybus.health.finding import Finding
from memorybus.notify.incidents import Due, Incident
from memorybus.text.display import iso, visible
from memorybus.text.redact import one_line

_LINES: Final = 20
"""Findings that `text` names; the rest are counted there, and are in the lists."""

_NO_MARKUP: Final = str.maketrans({"<": "‹", ">": "›", "@": "＠"})
"""``<!channel>`` and ``@everyone`` would ring all phones."""


class Alarm(msgspec.Struct, frozen=True):
    """A finding as it is told.

    Attributes:
        id: stays the same however often it is told: when it begins, again, and when it is over.
        code: what kind of thing; the table of findings in docs/operations.md explains each.
        severity: how bad.
        subject: what it is about.
        text: what was seen.
        remedy: what to do.
        since: since when (ISO 8601, UTC): as the finding says, or when it was seen first.
        until: when it was seen no more; null while it is.
    """

    id: str
    code: str
    severity: str
    subject: str
    text: str
    remedy: str
    since: str | None
    until: str | None = None


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What is told at once.

    Attributes:
        version: of this form; fields may be added to it.
        kind: "test" if somebody tries whether this arrives.
        state: the worst of what is wrong now: "CRITICAL", "WARNING" or "OK".
        title: one line for people.
        text: all of it for people.
        namespace: which bus.
        host: who tells.
        at: when (ISO 8601, UTC).
        began: what is wrong now, and was not told; or has become worse.
        still: what was told and is wrong yet.
        ended: what was told and is over.
    """

    version: int = 1
    kind: Literal["alarm", "test"] = "alarm"
    state: str
    title: str
    text: str
    namespace: str
    host: str
    at: str
    began: list[Alarm] = []
    still: list[Alarm] = []
    ended: list[Alarm] = []


class Sender(msgspec.Struct, frozen=True):
    """Who tells: which bus, from which host, and what no text may hold."""

    namespace: str
    host: str
    secrets: frozenset[str] = frozenset()


def build_notice(due: Due, state: str, sender: Sender, now: int) -> Notice:
    """Return what a channel is told.

    Args:
        due: what.
        state: of it all.
        sender: who tells.
        now: milliseconds.
    """
    began, still, ended = (
        [_build_alarm(one, sender.secrets) for one in part]
        for part in (due.began, due.still, due.ended)
    )
    title = f"memorybus {sender.namespace}: {_describe_counts(began, still, ended)}"
    return Notice(
        state=state,
        title=title,
        text=_strip_markup("\n".join([f"{title} ({sender.host})", *_lines(began, still, ended)])),
        namespace=sender.namespace,
        host=sender.host,
        at=iso(now) or "",
        began=began,
        still=still,
        ended=ended,
    )


def build_test_notice(sender: Sender, now: int) -> Notice:
    """Return what `memorybus notify test` sends."""
    title = f"memorybus {sender.namespace}: a test, nothing is wrong"
    return Notice(
        kind="test",
        state="OK",
        title=title,
        text=_strip_markup(f"{title} ({sender.host})"),
        namespace=sender.namespace,
        host=sender.host,
        at=iso(now) or "",
    )


def _build_alarm(one: Incident, secrets: frozenset[str]) -> Alarm:
    found: Finding = one.finding
    subject, text, remedy = (
        visible(one_line(said, secrets)) for said in (found.subject, found.text, found.remedy)
    )
    since = found.since or iso(one.first)
    return Alarm(
        one.id, found.code, found.severity, subject, text, remedy, since, iso(one.gone or None)
    )


def _describe_counts(began: Sequence[Alarm], still: Sequence[Alarm], ended: Sequence[Alarm]) -> str:
    """Return how many of each there are, in words."""
    told = (("new", began), ("still wrong", still), ("over", ended))
    return ", ".join(f"{len(part)} {word}" for word, part in told if part)


def _lines(began: Sequence[Alarm], still: Sequence[Alarm], ended: Sequence[Alarm]) -> list[str]:
    lines = [f"{one.severity.upper()} {one.text}; {one.remedy}" for one in began]
    lines += [f"STILL {one.severity.upper()} {one.text}" for one in still]
    lines += [f"OVER {one.text}" for one in ended]
    more = len(lines) - _LINES
    return [*lines[:_LINES], f"and {more} more"] if more > 0 else lines


def _strip_markup(text: str) -> str:
    return text.translate(_NO_MARKUP)
