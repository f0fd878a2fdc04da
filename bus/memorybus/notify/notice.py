"""The notice that a webhook and a command receive: one JSON object for all that is new; pure.

`text` and `title` are for people, in services that show one field. They contain no mark-up and no
mentions that would notify anybody else, because a finding may quote hostile text.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from memorybus.health.finding import Finding
from memorybus.notify.incidents import DueReport, Incident
from memorybus.text.display import iso, visible
from memorybus.text.redact import one_line

_MAX_LINES: Final = 20
"""How many findings `text` names; it counts the others, which only the lists contain."""

_NO_MARKUP: Final = str.maketrans({"<": "‹", ">": "›", "@": "＠"})
"""Replaces the characters of mentions: ``<!channel>`` and ``@everyone`` would ring all phones."""


class Alarm(msgspec.Struct, frozen=True):
    """A finding in a notice; times are ISO 8601, UTC.

    Attributes:
        id: the same id in every notice of this finding, from its beginning to its end.
        code: the kind of finding; the table of findings in docs/operations.md explains each.
        severity: how bad it is: "critical" or "warning".
        subject: what it is about.
        text: what was seen.
        remedy: what to do.
        since: since when it is wrong, or when it was seen first if nobody knows that.
        until: when it was found to be over; null while it is wrong.
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
    """A notice: all that is reported to a channel at once.

    Attributes:
        version: the version of this format; fields may be added without a new version.
        kind: "test" for `memorybus notify test`, else "alarm".
        state: the worst of what is wrong now: "CRITICAL", "WARNING" or "OK".
        title: a summary in one line, for people.
        text: the whole notice, for people.
        namespace: the namespace of the bus.
        host: the host that sends the notice.
        at: when it was made (ISO 8601, UTC).
        began: what is wrong now and was not reported before, or has become critical.
        still: what was reported before and is still wrong.
        ended: what was reported before and is over.
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


class NoticeSender(msgspec.Struct, frozen=True):
    """The sender of notices.

    Attributes:
        namespace: the namespace of the bus.
        host: the name of this host.
        secrets: texts that no notice may contain.
    """

    namespace: str
    host: str
    secrets: frozenset[str] = frozenset()


def build_notice(due: DueReport, state: str, sender: NoticeSender, now: int) -> Notice:
    """Return the notice for a channel.

    Args:
        due: what to report.
        state: the worst state of all incidents, see `worst_state`.
        sender: the sender.
        now: milliseconds since the Unix epoch.
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


def build_test_notice(sender: NoticeSender, now: int) -> Notice:
    """Return the notice that `memorybus notify test` sends."""
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
        visible(one_line(part, secrets)) for part in (found.subject, found.text, found.remedy)
    )
    since = found.since or iso(one.first)
    return Alarm(
        one.id, found.code, found.severity, subject, text, remedy, since, iso(one.gone or None)
    )


def _describe_counts(began: Sequence[Alarm], still: Sequence[Alarm], ended: Sequence[Alarm]) -> str:
    """Return how many alarms of each list there are, in words."""
    lists = (("new", began), ("still wrong", still), ("over", ended))
    return ", ".join(f"{len(alarms)} {word}" for word, alarms in lists if alarms)


def _lines(began: Sequence[Alarm], still: Sequence[Alarm], ended: Sequence[Alarm]) -> list[str]:
    lines = [f"{one.severity.upper()} {one.text}; {one.remedy}" for one in began]
    lines += [f"STILL {one.severity.upper()} {one.text}" for one in still]
    lines += [f"OVER {one.text}" for one in ended]
    more = len(lines) - _MAX_LINES
    return [*lines[:_MAX_LINES], f"and {more} more"] if more > 0 else lines


def _strip_markup(text: str) -> str:
    return text.translate(_NO_MARKUP)
