"""Whether memory works in one Hermes: plugin, provider, spool, lag, last error."""

from typing import Any

import msgspec

from memorybus import Settings
from memorybus.config.redis_urls import redacted
from memorybus.errors import LogError
from memorybus.health.finding import Check
from memorybus.health.monitor import SpoolStatus, open_monitor, spool_status
from memorybus.surfaces.hermes import problems
from memorybus.surfaces.hermes.config import active_provider
from memorybus.surfaces.hermes.home import PLUGIN, HermesHome
from memorybus.surfaces.hermes.install import install
from memorybus.surfaces.hermes.install.install import PythonCheck
from memorybus.surfaces.hermes.problems import Problem
from memorybus.surfaces.views.safe import one_line
from memorybus.text.display import iso

_SHOWN = 200
_PATIENCE = 0.7
"""Seconds for one answer of Redis."""


class Lag(msgspec.Struct, frozen=True):
    """One provider's backlog.

    Attributes:
        name: the instance.
        backlog: events of the log that it has not applied.
        last_applied_at: when the newest event it applied entered the log (ISO 8601, UTC).
        parked: keys that wait for an operator.
        failing: how its calls fail, while none succeeds.
    """

    name: str
    backlog: int
    last_applied_at: str | None
    parked: int
    failing: str


class Look(msgspec.Struct, frozen=True):
    """The bus at one moment.

    Attributes:
        spool: what this host has not sent.
        providers: their backlogs; empty if Redis is away.
        workers: how many are alive.
    """

    spool: SpoolStatus
    providers: list[Lag] = []
    workers: int = 0


class HermesStatus(msgspec.Struct, frozen=True):
    """Everything `memorybus hermes status --json` prints.

    Attributes:
        home: the Hermes.
        profile: its name there, and the agent's in memories.
        ok: whether all checks passed.
        checks: what was looked at.
        look: spool and backlogs.
        problems: the last errors of hooks, newest first.
    """

    home: str
    profile: str
    ok: bool
    checks: list[Check]
    look: Look
    problems: list[Problem]


def read(home: HermesHome, settings: Settings, python: PythonCheck) -> HermesStatus:
    """Look at everything; takes a second or two, also without Redis.

    Args:
        home: the Hermes.
        settings: of the bus, as its plugin has them.
        python: whether the Python that runs Hermes finds the bus.
    """
    found, error = _looked(settings)
    checks = [
        _files(home),
        _importable(python),
        _active(home),
        _log(settings, error),
        *([] if error else [_workers(found)]),
        *map(_provider, found.providers),
    ]
    return HermesStatus(
        home=str(home.path),
        profile=home.profile,
        ok=all(check.ok for check in checks),
        checks=checks,
        look=found,
        problems=problems.read(settings),
    )


def status_config(settings: Settings) -> dict[str, str]:
    """Return what ``hermes memory status`` shows, within two seconds.

    Args:
        settings: of the bus.
    """
    found, error = _looked(settings)
    lines = {"log": error or f"up, {redacted(settings.redis_url)}", "spool": describe_spool(found)}
    lines |= {f"provider {one.name}": describe_lag(one) for one in found.providers}
    last = problems.read(settings)
    lines["last error"] = describe_problem(last[0]) if last else "none"
    return lines


def backup_paths(home: HermesHome, settings: Settings) -> list[str]:
    """Return what a backup needs beside the Hermes home: no network, no start.

    The spool, what this host knows of sessions, the providers' local state, the settings.
    """
    paths = [
        settings.spool_dir,
        settings.sessions_path,
        settings.data_dir / "hermes",
        settings.data_dir / "providers",
        home.settings_file,
    ]
    return [str(path) for path in paths if path.exists()]


def _looked(settings: Settings) -> tuple[Look, str]:
    """Look at the bus; without Redis at this host alone, and say why."""
    try:
        return look(settings), ""
    except LogError as error:
        return without_redis(settings), f"away: {one_line(str(error), _SHOWN)}"


# -- checks ---------------------------------------------------------------------------------------


def _files(home: HermesHome) -> Check:
    states = install.state(home)
    wrong = [f"{name} {state}" for name, state in states.items() if state != "in place"]
    return Check(
        name="plugin",
        ok=not wrong,
        found=f"{home.plugin_dir}: {', '.join(wrong) or 'in place, of this version'}",
        fix=f"memorybus hermes install --home {home.path}" if wrong else "",
    )


def _importable(python: PythonCheck) -> Check:
    found = f"{python.python or 'not found'}: {python.version or 'memorybus is not there'}"
    return Check(name="python", ok=not python.remedy, found=found, fix=python.remedy)


def _active(home: HermesHome) -> Check:
    active = active_provider(home.config)
    right = active == PLUGIN
    fix = f"HERMES_HOME={home.path} hermes memory setup {PLUGIN}"
    return Check(
        name="provider",
        ok=right,
        found=f"memory.provider is {active or 'not set'}",
        fix="" if right else fix,
    )


def _log(settings: Settings, error: str) -> Check:
    return Check(
        name="log",
        ok=not error,
        found=error or redacted(settings.redis_url),
        fix="start it with `memorybus up`; until then events are spooled" if error else "",
    )


def _workers(found: Look) -> Check:
    idle = not found.workers
    return Check(
        name="workers",
        ok=not idle,
        found=f"{found.workers} alive",
        fix="start one with `memorybus up`: nothing is applied or recalled" if idle else "",
    )


def _provider(one: Lag) -> Check:
    wrong = one.failing or one.parked
    fix = "see `memorybus dlq ls`" if one.parked else "it goes on by itself once calls succeed"
    return Check(
        name=one_line(one.name, 16), ok=not wrong, found=describe_lag(one), fix=fix if wrong else ""
    )


# -- words ----------------------------------------------------------------------------------------


def describe_spool(found: Look) -> str:
    """Return the spool's depth in words."""
    spool = found.spool
    since = f", the oldest since {spool.oldest_at}" if spool.oldest_at else ""
    return f"{spool.events} events to send, {spool.bytes} bytes{since}"


def describe_lag(one: Lag) -> str:
    """Return how far a provider is in words."""
    parts = [f"{one.backlog} events behind", f"last applied {one.last_applied_at or 'never'}"]
    parts += [f"{one.parked} parked keys"] if one.parked else []
    parts += [f"fails: {one_line(one.failing, _SHOWN)}"] if one.failing else []
    return ", ".join(parts)


def describe_problem(problem: Problem) -> str:
    """Return a hook's error in words."""
    return one_line(f"{iso(problem.at)} {problem.hook}: {problem.error} ({problem.count}x)", 300)


# -- one look at the bus ---------------------------------------------------------------------------


def without_redis(settings: Settings) -> Look:
    """Return what this host can tell alone."""
    return Look(spool_status(settings))


def look(settings: Settings, timeout: float = _PATIENCE) -> Look:
    """Look once.

    Args:
        settings: where the log is.
        timeout: seconds for each answer; the first that does not come ends the look.

    Raises:
        LogError: Redis does not answer, or holds something else.
    """
    with open_monitor(settings, timeout) as monitor:
        workers = monitor.roster.alive()
        names = monitor.provider_names()
        failing = {name: text for worker in workers for name, text in worker.failing.items()}
        lanes = monitor.read_lanes(names)
        providers = [_lag(name, lanes[name], failing.get(name, "")) for name in names]
        return Look(monitor.read_spool(), providers, len(workers))


def _lag(name: str, lanes: list[Any], failing: str) -> Lag:
    applied = [int(lane.entry.partition("-")[0]) for lane in lanes if lane.n]
    return Lag(
        name=name,
        backlog=sum(max(0, lane.head - lane.n - lane.done_above) for lane in lanes),
        last_applied_at=iso(max(applied, default=None)),
        parked=sum(lane.parked_keys for lane in lanes),
        failing=failing,
    )
