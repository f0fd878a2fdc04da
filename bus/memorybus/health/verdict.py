"""The verdict on a bus, and the state that all views share: read at most once a second."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Literal

import msgspec

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable, MemoryBusError
from memorybus.health.finding import Finding
from memorybus.health.findings import findings_of, redis_away_finding
from memorybus.health.monitor import read_with_lanes, spool_status
from memorybus.health.status import (
    SpoolStatus,
    Status,
    StatusWithLanes,
)
from memorybus.registry.lanes import LanesByInstance
from memorybus.text.display import count_text
from memorybus.text.redact import masked

State = Literal["OK", "WARNING", "CRITICAL", "UNKNOWN"]
_CODES: Final[dict[State, int]] = {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}
_MAX_LINE_CHARS = 1_000  # findings may quote any backend


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on a bus."""

    state: State  # the worst severity of the findings
    code: int  # the exit code of a monitoring plugin for that state
    line: str  # state and findings, then figures behind a bar, in the one line of such a plugin
    findings: list[Finding] = []  # all that is wrong, each with its remedy

    def without_quotations(self) -> "Verdict":
        """Return the verdict without what others wrote, for people who are not identified."""
        findings = [finding.without_quotation() for finding in self.findings]
        summary = "; ".join(finding.text for finding in findings)
        return _build_verdict(self.state, summary, "", findings) if findings else self


def judge_status(status: Status, configured: Sequence[str], now_ms: int) -> Verdict:
    findings = sorted(findings_of(status, configured, now_ms), key=lambda finding: finding.severity)
    worst = {finding.severity for finding in findings}
    state: State = "CRITICAL" if "critical" in worst else "WARNING" if worst else "OK"
    summary = "; ".join(finding.text for finding in findings) or _describe_well(status)
    return _build_verdict(state, summary, _figures(status), findings)


def unreachable_verdict(error: LogUnavailable, spool: SpoolStatus) -> Verdict:
    away = redis_away_finding(error, spool)
    return _build_verdict("CRITICAL", away.text, "", [away])


def unknown_verdict(error: Exception) -> Verdict:
    return _build_verdict("UNKNOWN", str(error), "", [])


def _describe_well(status: Status) -> str:
    workers = count_text(len(status.workers), "worker")
    providers = count_text(len(status.providers), "provider")
    return f"{workers}, {providers}, {count_text(status.log.published, 'event')}"


def _figures(status: Status) -> str:
    figures = {
        "workers": len(status.workers),
        "published": f"{status.log.published}c",
        "spool": status.spool.events,
        "backlog": sum(provider.backlog for provider in status.providers),
        "dead_letters": sum(provider.dead_letters for provider in status.providers),
        "refused": sum(provider.refused for provider in status.providers),
        "waiting_behind": sum(provider.waiting_behind for provider in status.providers),
    }
    return " ".join(f"{name}={value}" for name, value in figures.items())


def _build_verdict(state: State, summary: str, figures: str, findings: list[Finding]) -> Verdict:
    """Build the line; the summary may be hostile text, and a bar in it would begin the figures."""
    text = "".join(char if char.isprintable() else " " for char in masked(summary))
    text = text.replace("|", "/")[:_MAX_LINE_CHARS]
    line = f"MEMORYBUS {state} - {text}{f' | {figures}' if figures else ''}"
    return Verdict(state, _CODES[state], line, findings)


CACHE_SECONDS = 1.0  # seconds for which one reading answers all callers


class BusState(msgspec.Struct, frozen=True):
    """The state of the bus at one moment."""

    at_ms: int  # when it was read (wall time, milliseconds since the Unix epoch)
    status: Status | None  # the figures; None if Redis could not be read
    verdict: Verdict  # what is wrong, and how badly
    lanes: LanesByInstance = {}  # the lanes of each instance, by partition

    @property
    def findings(self) -> list[Finding]:
        """What is wrong, the worst first."""
        return self.verdict.findings

    def without_quotations(self) -> "BusState":
        """Return the state without what others wrote: errors of backends, reasons of operators."""
        return msgspec.structs.replace(self, verdict=self.verdict.without_quotations())


class BusStateCache:
    """Reads the status for all callers, who may be on any thread."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        read: Callable[[Settings], StatusWithLanes] = read_with_lanes,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._read = read
        self._lock = threading.Lock()
        self._known: BusState | None = None
        self._until = float("-inf")

    def read(self) -> BusState:
        """Return a state at most a second old; if Redis is away, its verdict says so."""
        with self._lock:
            if self._known is None or self._clock.monotonic() >= self._until:
                self._known = self._read_anew()
                self._until = self._clock.monotonic() + CACHE_SECONDS
            return self._known

    def forget(self) -> None:
        with self._lock:
            self._known = None

    def _read_anew(self) -> BusState:
        now_ms = self._clock.now_ms()
        try:
            reading = self._read(self._settings)
        except LogUnavailable as error:
            return BusState(now_ms, None, unreachable_verdict(error, self._spool()))
        except MemoryBusError as error:
            return BusState(now_ms, None, unknown_verdict(error))
        verdict = judge_status(reading.status, self._settings.providers, now_ms)
        return BusState(now_ms, reading.status, verdict, reading.lanes)

    def _spool(self) -> SpoolStatus:
        with suppress(MemoryBusError):
            return spool_status(self._settings)
        return SpoolStatus(0, 0, None)
