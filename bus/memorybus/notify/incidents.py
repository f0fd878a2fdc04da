"""Decides what to report to each channel now, from the findings and its earlier notices; pure.

A notice reports the difference between the present findings and what the channel was told before,
not every change. A finding that began and ended while a webhook was away is not reported, so that
nothing piles up.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from memorybus.config.notify import Notify
from memorybus.health.finding import Finding, Severity
from memorybus.ids import text_digest

MAX_FINDINGS: Final = 256
"""How many findings are tracked at most (G10), the critical ones first."""


class Reported(msgspec.Struct, frozen=True):
    """One report of an incident to a channel.

    Attributes:
        at: when the channel took it, milliseconds since the Unix epoch.
        severity: how bad the incident was then.
    """

    at: int
    severity: Severity


class Incident(msgspec.Struct, frozen=True):
    """A finding from when it was first seen until its end was reported; times as in `Reported`.

    Attributes:
        finding: the finding as it was seen last.
        first: when it was seen first.
        gone: when it was first missing after that; 0 as long as it is seen.
        reports: the last report by channel; none for a channel to which the end was reported.
    """

    finding: Finding
    first: int
    gone: int = 0
    reports: Mapping[str, Reported] = {}

    @property
    def id(self) -> str:
        """An id that is the same in all reports, whichever process sends them."""
        return text_digest(f"{self.finding.code} {self.finding.subject} {self.first}")


Incidents = tuple[Incident, ...]


class DueReport(msgspec.Struct, frozen=True):
    """What to report to a channel now.

    Attributes:
        began: incidents that are new to it or have become critical.
        still: incidents that were reported to it before and are still wrong.
        ended: incidents that were reported to it before and are over.
    """

    began: Incidents = ()
    still: Incidents = ()
    ended: Incidents = ()

    def __bool__(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.began or self.still or self.ended)


def update_incidents(
    known: Incidents, findings: Iterable[Finding], rules: Notify, now: int
) -> Incidents:
    """Return the incidents as they are after a look at the bus.

    Args:
        known: the incidents before the look.
        findings: what is wrong now.
        rules: the least severity that is reported, and after what time.
        now: milliseconds since the Unix epoch.
    """
    tracked = [one for one in findings if rules.severity == "warning" or one.severity == "critical"]
    tracked = sorted(tracked, key=lambda one: one.severity)[:MAX_FINDINGS]
    current = {_key(one): one for one in tracked}
    before = {_key(one.finding): one for one in known if not _is_over(one, rules, now)}
    present = [
        Incident(one, before[key].first, 0, before[key].reports)
        if key in before
        else Incident(one, now)
        for key, one in current.items()
    ]
    absent = [_mark_gone(one, now) for key, one in before.items() if key not in current]
    return (*present, *absent)


def find_due(known: Incidents, channel: str, rules: Notify, now: int) -> DueReport:
    """Return what to report to a channel now; `now` is milliseconds since the Unix epoch."""
    began = tuple(one for one in known if _is_news(one, channel, rules, now))
    ended = tuple(one for one in known if channel in one.reports and _has_ended(one, rules, now))
    standing = tuple(
        one for one in known if channel in one.reports and not one.gone and one not in began
    )
    late = rules.again and any(
        now - one.reports[channel].at >= rules.again * 1000 for one in standing
    )
    return DueReport(began, standing if late else (), ended)


def note_reported(known: Incidents, channel: str, reported: DueReport, now: int) -> Incidents:
    """Return the incidents after a channel took a report; `now` is milliseconds."""
    severities = {one.id: one.finding.severity for one in (*reported.began, *reported.still)}
    over = {one.id for one in reported.ended}
    return tuple(
        _note_report(one, channel, severities.get(one.id), one.id in over, now) for one in known
    )


def drop_other_channels(known: Incidents, channels: Collection[str]) -> Incidents:
    """Return the incidents without the reports to channels that no longer exist."""
    return tuple(
        msgspec.structs.replace(
            one, reports={name: last for name, last in one.reports.items() if name in channels}
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
    return not one.reports and _has_ended(one, rules, now)


def _is_news(one: Incident, channel: str, rules: Notify, now: int) -> bool:
    """Say whether an incident is news to a channel: it is new and lasts, or it became critical."""
    if one.gone:
        return False
    last = one.reports.get(channel)
    if last is None:
        return now - one.first >= rules.after * 1000
    return last.severity == "warning" and one.finding.severity == "critical"


def _note_report(
    one: Incident, channel: str, severity: Severity | None, over: bool, now: int
) -> Incident:
    reports = dict(one.reports)
    if severity is not None:
        reports[channel] = Reported(now, severity)
    if over:
        reports.pop(channel, None)
    return msgspec.structs.replace(one, reports=reports)
