"""Reports whether memory works in one Hermes: plugin, provider, spool, lag, last error."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from memorybus import Settings
from memorybus.errors import LogError
from memorybus.health.finding import Check
from memorybus.health.monitor import open_monitor, spool_status
from memorybus.health.status import SpoolStatus
from memorybus.text.display import count_text, iso, one_line
from memorybus.text.redact import masked

from memorybus_hermes import problems
from memorybus_hermes.home import PLUGIN, HermesHome, active_provider, isolates_plugins
from memorybus_hermes.install import install
from memorybus_hermes.install.install import PythonCheck
from memorybus_hermes.install.probe import PluginPlace, find_directory
from memorybus_hermes.problems import Problem

_MAX_CHARS = 200
_REDIS_TIMEOUT = 0.7  # seconds that Redis may take for one answer


class Lag(msgspec.Struct, frozen=True):
    """One provider's backlog.

    Attributes:
        last_applied_at: when the newest event it applied entered the log (ISO 8601, UTC).
        parked: how many order keys wait for an operator.
        failing: the error of its calls while none succeeds; "" otherwise.
    """

    name: str
    backlog: int
    last_applied_at: str | None
    parked: int
    failing: str


class HermesLook(msgspec.Struct, frozen=True):
    """The state of the bus at one moment.

    Attributes:
        providers: the providers' backlogs; empty if Redis is away.
        workers: how many workers are alive; 0 if Redis is away.
    """

    spool: SpoolStatus
    providers: list[Lag] = []
    workers: int = 0


class HermesStatus(msgspec.Struct, frozen=True):
    """What `memorybus hermes status --json` prints.

    Attributes:
        profile: the home's profile, which is the agent's name in memories.
        problems: the last errors of hooks, newest first.
    """

    home: str
    profile: str
    ok: bool
    checks: list[Check]
    look: HermesLook
    problems: list[Problem]


def read(home: HermesHome, settings: Settings, python: PythonCheck) -> HermesStatus:
    """Check everything. This takes a second or two, also without Redis."""
    look, error = _look_or_spool(settings)
    checks = [
        _plugin(home, python.placement),
        _importable(python),
        _active(home),
        *([_isolation()] if isolates_plugins(home.config) else []),
        _log(settings, error),
        *([] if error else [_workers(look)]),
        *map(_provider, look.providers),
    ]
    return HermesStatus(
        home=str(home.path),
        profile=home.profile,
        ok=all(check.ok for check in checks),
        checks=checks,
        look=look,
        problems=problems.read(settings),
    )


def status_config(home: HermesHome, settings: Settings) -> dict[str, str]:
    """Return the lines of ``hermes memory status`` by their names, within two seconds.

    They are those of `memorybus hermes status`. The Hermes of this process has loaded the plugin,
    so it is only asked where it found it.
    """
    directory = find_directory()
    placement = None if directory is None else PluginPlace(directory)
    status = read(home, settings, PythonCheck(sys.executable, version(PLUGIN), "", placement))
    lines = {check.name: describe_check(check) for check in status.checks}
    lines["spool"] = describe_spool(status.look)
    return lines | {
        "last error": describe_problem(status.problems[0]) if status.problems else "none"
    }


def backup_paths(home: HermesHome, settings: Settings) -> list[str]:
    """Return the paths that a backup needs in addition to the Hermes home; use no network.

    They hold the spool, this host's notes of sessions, the plugin's own state, the providers' local
    state, and the settings.
    """
    paths = [
        settings.spool_dir,
        settings.sessions_path,
        settings.data_dir / "hermes",
        settings.data_dir / "providers",
        home.settings_file,
    ]
    return [str(path) for path in paths if path.exists()]


def _look_or_spool(settings: Settings) -> tuple[HermesLook, str]:
    """Read the bus, or only this host if Redis is away; return what was read, and the error."""
    try:
        return read_bus(settings), ""
    except LogError as error:
        return without_redis(settings), f"away: {one_line(str(error), _MAX_CHARS)}"


# -- checks ---------------------------------------------------------------------------------------


def _plugin(home: HermesHome, placement: PluginPlace | None) -> Check:
    """Check what Hermes takes: the home's directory, or the package by its entry point.

    Without a Hermes that can be asked, only the directory is checked.
    """
    install_it = f"memorybus hermes install --home {home.path}"
    if placement and placement.refusal:
        found = f"Hermes does not use {placement.directory}: {placement.refusal}"
        # Hermes's own command enables directories only, and knows no plugin of an entry point.
        disabled = "plugins.disabled" in placement.refusal
        enable = f"take {PLUGIN} out of plugins.disabled in {home.config}"
        return _check_plugin(one_line(found, 300), enable if disabled else "repair what it names")
    directory = placement.directory if placement else str(home.plugin_dir)
    if directory and Path(directory).resolve() != home.plugin_dir.resolve():
        return _check_plugin(f"Hermes takes the entry point: {directory}")
    states = install.file_states(home)
    wrong = [f"{name} {state}" for name, state in states.items() if state != "in place"]
    found = f"{home.plugin_dir}: {', '.join(wrong) or 'in place, of this version'}"
    return _check_plugin(found, install_it if wrong or not directory else "")


def _isolation() -> Check:
    found = (
        "Hermes runs the plugin in a process of its own (plugins.isolation), where "
        "`hermes memorybus …` is no command: use `memorybus hermes …`"
    )
    return Check(name="isolation", ok=True, found=found, fix="")


def _check_plugin(found: str, fix: str = "") -> Check:
    return Check(name="plugin", ok=not fix, found=found, fix=fix)


def _importable(python: PythonCheck) -> Check:
    found = f"{python.python or 'not found'}: {python.version or 'it cannot import memorybus'}"
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
        found=error or masked(settings.redis_url),
        fix="repair what it names; until then events are spooled" if error else "",
    )


def _workers(look: HermesLook) -> Check:
    idle = not look.workers
    return Check(
        name="workers",
        ok=not idle,
        found=f"{look.workers} alive",
        fix="start one with `memorybus up`: nothing is applied or recalled" if idle else "",
    )


def _provider(one: Lag) -> Check:
    wrong = one.failing or one.parked
    by_itself = "it continues by itself as soon as a call succeeds"
    fix = "see `memorybus dlq ls`" if one.parked else by_itself
    return Check(
        name=one_line(one.name, 16), ok=not wrong, found=describe_lag(one), fix=fix if wrong else ""
    )


# -- words ----------------------------------------------------------------------------------------


def describe_check(check: Check) -> str:
    """Return a check as one line: its sign, what was seen, and what to do."""
    remedy = f" → {one_line(check.fix, _MAX_CHARS)}" if check.fix else ""
    return f"{'✓' if check.ok else '✗'} {check.found}{remedy}"


def describe_spool(look: HermesLook) -> str:
    spool = look.spool
    since = f", the oldest since {spool.oldest_at}" if spool.oldest_at else ""
    return f"{count_text(spool.events, 'unsent event')}, {spool.bytes} bytes{since}"


def describe_lag(one: Lag) -> str:
    parts = [f"{one.backlog} events behind", f"last applied {one.last_applied_at or 'never'}"]
    parts += [f"{one.parked} parked keys"] if one.parked else []
    parts += [f"fails: {one_line(one.failing, _MAX_CHARS)}"] if one.failing else []
    return ", ".join(parts)


def describe_problem(problem: Problem) -> str:
    """Return a hook's error as one line."""
    return one_line(f"{iso(problem.at)} {problem.hook}: {problem.error} ({problem.count}x)", 300)


# -- reading the bus -------------------------------------------------------------------------------


def without_redis(settings: Settings) -> HermesLook:
    """Return what this host knows without Redis: its spool."""
    return HermesLook(spool_status(settings))


def read_bus(settings: Settings, timeout: float = _REDIS_TIMEOUT) -> HermesLook:
    """Read spool, backlogs and workers once.

    Args:
        timeout: seconds that Redis may take for each answer; the first late one is an error.

    Raises:
        LogError: Redis does not answer, or what it holds is no log of ours.
    """
    with open_monitor(settings, timeout) as monitor:
        workers = monitor.roster.alive()
        names = monitor.provider_names()
        failing = {name: text for worker in workers for name, text in worker.failing.items()}
        lanes = monitor.lanes.read(names)
        providers = [_lag(name, lanes[name], failing.get(name, "")) for name in names]
        return HermesLook(monitor.read_spool(), providers, len(workers))


def _lag(name: str, lanes: list[Any], failing: str) -> Lag:
    applied = [int(lane.entry.partition("-")[0]) for lane in lanes if lane.n]
    return Lag(
        name=name,
        backlog=sum(lane.backlog for lane in lanes),
        last_applied_at=iso(max(applied, default=None)),
        parked=sum(lane.parked_keys for lane in lanes),
        failing=failing,
    )
