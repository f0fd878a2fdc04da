"""The verdict on a bus in one line, with the exit code of a monitoring plugin; pure."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from memorybus.errors import LogUnavailable
from memorybus.health.finding import Finding
from memorybus.health.monitor import SpoolStatus, Status
from memorybus.health.services import findings_of, redis_away_finding
from memorybus.text.redact import masked

State = Literal["OK", "WARNING", "CRITICAL", "UNKNOWN"]

_CODES: Final[dict[State, int]] = {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}
_MAX_LINE_CHARS = 1_000
"""Findings may quote any backend."""


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on a bus.

    Attributes:
        state: the worst severity of the findings.
        code: the exit code of a monitoring plugin for that state.
        line: state and findings, then figures behind a bar, in the one line of such a plugin.
        findings: all that is wrong, each with its remedy.
    """

    state: State
    code: int
    line: str
    findings: list[Finding] = []

    def without_quotations(self) -> "Verdict":
        """Return the verdict without what others wrote, for people who are not identified."""
        found = [one.without_quotation() for one in self.findings]
        summary = "; ".join(one.text for one in found)
        return _build_verdict(self.state, summary, "", found) if found else self


def judge_status(status: Status, configured: Sequence[str], now_ms: int) -> Verdict:
    """Return the verdict on a status.

    Args:
        status: the figures.
        configured: the providers of the settings.
        now_ms: this machine's wall time in milliseconds.
    """
    found = sorted(findings_of(status, configured, now_ms), key=lambda one: one.severity)
    worst = {one.severity for one in found}
    state: State = "CRITICAL" if "critical" in worst else "WARNING" if worst else "OK"
    summary = "; ".join(one.text for one in found) or _describe_well(status)
    return _build_verdict(state, summary, _figures(status), found)


def unreachable_verdict(error: LogUnavailable, spool: SpoolStatus) -> Verdict:
    """Return the verdict if Redis does not answer.

    Args:
        error: the error of Redis.
        spool: the events that wait for Redis on this host.
    """
    away = redis_away_finding(error, spool)
    return _build_verdict("CRITICAL", away.text, "", [away])


def unknown_verdict(error: Exception) -> Verdict:
    """Return the verdict if an error kept the status from being read."""
    return _build_verdict("UNKNOWN", str(error), "", [])


def _describe_well(status: Status) -> str:
    workers = "1 worker" if len(status.workers) == 1 else f"{len(status.workers)} workers"
    return f"{workers}, {len(status.providers)} providers, {status.log.published} events"


def _figures(status: Status) -> str:
    figures = {
        "workers": len(status.workers),
        "published": f"{status.log.published}c",
        "spool": status.spool.events,
        "backlog": sum(one.backlog for one in status.providers),
        "dead_letters": sum(one.dead_letters for one in status.providers),
        "refused": sum(one.refused for one in status.providers),
        "waiting_behind": sum(one.waiting_behind for one in status.providers),
    }
    return " ".join(f"{name}={value}" for name, value in figures.items())


def _build_verdict(state: State, summary: str, figures: str, found: list[Finding]) -> Verdict:
    """Build the line; the summary may be hostile text, and a bar in it would begin the figures."""
    text = "".join(char if char.isprintable() else " " for char in masked(summary))
    text = text.replace("|", "/")[:_MAX_LINE_CHARS]
    line = f"MEMORYBUS {state} - {text}{f' | {figures}' if figures else ''}"
    return Verdict(state, _CODES[state], line, found)
