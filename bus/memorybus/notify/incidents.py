"""Decides what each channel has to be told now, from the findings and what it was told; pure.

A channel is told the difference between the present findings and what it was told before, not every
change. If a finding began and ended while a webhook was away, it is not told, and nothing piles up.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from memorybus.config.notify import Notify
from memorybus.health.finding import Finding, Severity
from memorybus.ids import text_digest

MOST: Final = 256
"""Findings that are kept track of (G10), the critical ones first."""


class Telling(msgspec.Struct, frozen=True):
    """When (milliseconds) a channel was told of an incident, and how bad it was then."""

    at: int
    severity: Severity


class Incident(msgspec.Struct, frozen=True):
    """A finding from its first sight until its end was told.

    Attributes:
        finding: as it was seen last.
        first: when it was seen first (milliseconds).
        gone: since when it is not seen any more (milliseconds); 0 while it is.
        told: the last telling, by channel; a channel that was told of the end has none.
    """

    finding: Finding
    first: int
    gone: int = 0
    told: Mapping[str, Telling] = {}

    @property
    def id(self) -> str:
        """A name that stays the same however often it is told, and whoever tells it."""
        return text_digest(f"{self.finding.code} {self.finding.subject} {self.first}")


Incidents = tuple[Incident, ...]


class Due(msgspec.Struct, frozen=True):
    """What a channel has to be told; what is `still` wrong it was told before."""

    began: Incidents = ()
    still: Incidents = ()
    ended: Incidents = ()

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.began or self.still or self.ended)


def update_incidents(
    known: Incidents, findings: Iterable[Finding], rules: Notify, now: int
) -> Incidents:
    """Return the incidents after a look.

    Args:
        known: those before.
        findings: what is wrong now.
        rules: what is told at all, and after what time.
        now: milliseconds.
    """
    told = [one for one in findings if rules.severity == "warning" or one.severity == "critical"]
    told = sorted(told, key=lambda one: one.severity)[:MOST]
    current = {_key(one): one for one in told}
    before = {_key(one.finding): one for one in known if not _is_over(one, rules, now)}
    present = [
        Incident(one, before[key].first, 0, before[key].told)
        if key in before
        else Incident(one, now)
        for key, one in current.items()
    ]
    absent = [_mark_gone(one, now) for key, one in before.items() if key not in current]
    return (*present, *absent)


def find_due(known: Incidents, channel: str, rules: Notify, now: int) -> Due:
    """Return what a channel has to be told now."""
    began = tuple(one for one in known if _is_news(one, channel, rules, now))
    ended = tuple(one for one in known if channel in one.told and _has_ended(one, rules, now))
    standing = tuple(
        one for one in known if channel in one.told and not one.gone and one not in began
    )
    late = rules.again and any(now - one.told[channel].at >= rules.again * 1000 for one in standing)
    return Due(began, standing if late else (), ended)


def confirm_told(known: Incidents, channel: str, told: Due, now: int) -> Incidents:
    """Return the incidents after a channel was told."""
    said = {one.id: one.finding.severity for one in (*told.began, *told.still)}
    over = {one.id for one in told.ended}
    return tuple(_note_told(one, channel, said.get(one.id), one.id in over, now) for one in known)


def drop_other_channels(known: Incidents, channels: Collection[str]) -> Incidents:
    """Return the incidents without what was told to channels that no longer exist."""
    return tuple(
        msgspec.structs.replace(
            one, told={name: when for name, when in one.told.items() if name in channels}
        )
        for one in known
    )


def worst_state(known: Sequence[Incident]) -> str:
    """Return the worst state of all incidents, as `memorybus check` names it."""
    found = {one.finding.severity for one in known if not one.gone}
    return "CRITICAL" if "critical" in found else "WARNING" if found else "OK"


def _key(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.subject


def _mark_gone(one: Incident, now: int) -> Incident:
    return msgspec.structs.replace(one, gone=one.gone or now)


def _has_ended(one: Incident, rules: Notify, now: int) -> bool:
    return bool(one.gone) and now - one.gone >= rules.after * 1000


def _is_over(one: Incident, rules: Notify, now: int) -> bool:
    return not one.told and _has_ended(one, rules, now)


def _is_news(one: Incident, channel: str, rules: Notify, now: int) -> bool:
    """Say whether a channel has to be told: it is new and lasts, or became worse since."""
    if one.gone:
        return False
    last = one.told.get(channel)
    if last is None:
        return now - one.first >= rules.after * 1000
    return last.severity == "warning" and one.finding.severity == "critical"


def _note_told(
    one: Incident, channel: str, severity: Severity | None, over: bool, now: int
) -> Incident:
    told = dict(one.told)
    if severity is not None:
        told[channel] = Telling(now, severity)
    if over:
        told.pop(channel, None)
    return msgspec.structs.replace(one, told=told)
