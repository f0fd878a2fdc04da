"""Puts the plugin into a Hermes home, and removes it.

The plugin's directory is a copy of the package `memorybus_hermes.memorybus`. Hermes 0.20
and later find that package by its entry point, too, so that they need no directory. All other code
is in the package `memorybus`, which the Python that runs Hermes must be able to import.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec
from memorybus import Settings, load, private
from memorybus.errors import ConfigError, MemoryBusError, install_command
from memorybus.msgspec_types import prepared

from memorybus_hermes.home import PLUGIN, HermesHome, active_provider
from memorybus_hermes.install import probe
from memorybus_hermes.install.probe import PluginPlace, PythonReport

FILES = ("__init__.py", "plugin.yaml", "cli.py")
_OFFERED_SETTINGS = ("url", "data_dir", "namespace", "user")
"""Settings that `hermes memory setup` and Hermes's dashboard ask for."""

_HERMES = "hermes_cli"  # the package of Hermes's command

_NAME_PYTHON = "name the Python that runs it with --python"
_NO_HERMES = (
    "no Hermes was found: the PATH has no `hermes` that is a Python script, and Hermes is not "
    f"installed beside this memorybus; {_NAME_PYTHON}"
)

_STILL_ON = f"memory.provider is still {PLUGIN}, so that Hermes goes on recording"

_PROBE_TIMEOUT = 60.0
_SETUP_TIMEOUT = 120.0

PluginFileState = Literal["in place", "missing", "other"]
RunProcess = Callable[..., "subprocess.CompletedProcess[str]"]


class NotInstalled(MemoryBusError):
    """The plugin could not be put in place or activated; the message says what to do."""


class PythonCheck(msgspec.Struct, frozen=True):
    """Whether the Python that runs Hermes can import the bus.

    Attributes:
        python: the interpreter's path; empty if none was found.
        version: the version of the bus that it imports; empty if it cannot import the bus.
        remedy: what to do; empty if the version is this one.
        placement: where its Hermes takes the plugin from; None if it has no Hermes.
    """

    python: str
    version: str
    remedy: str
    placement: PluginPlace | None = None


def plugin_files() -> dict[str, str]:
    folder = files("memorybus_hermes") / PLUGIN
    return {name: (folder / name).read_text(encoding="utf-8") for name in FILES}


def file_states(home: HermesHome) -> dict[str, PluginFileState]:
    """Return, by file name, how the plugin's files in a home compare with this release's."""
    return {name: _state(home.plugin_dir / name, text) for name, text in plugin_files().items()}


def _state(path: Path, text: str) -> PluginFileState:
    if not path.is_file():
        return "missing"
    return "in place" if path.read_bytes() == text.encode() else "other"


def write_plugin(home: HermesHome) -> list[str]:
    """Write the plugin's files, each in one step; return the names of those that changed.

    Raises:
        NotInstalled: the home does not exist, or another plugin lies in the plugin's place.
        OSError: a file cannot be written.
    """
    if not home.path.is_dir():
        raise NotInstalled(f"{home.path}: no such directory; start `hermes` once, or use --home")
    _refuse_foreign_plugin(home.plugin_dir)
    home.plugin_dir.mkdir(parents=True, exist_ok=True)
    changed = [name for name, found in file_states(home).items() if found != "in place"]
    texts = plugin_files()
    for name in changed:
        fresh = home.plugin_dir / f".{name}.new"
        fresh.write_text(texts[name], encoding="utf-8")
        fresh.replace(home.plugin_dir / name)
    return changed


def _refuse_foreign_plugin(folder: Path) -> None:
    """Raise `NotInstalled` if the folder is not ours, so that it is never changed or deleted."""
    init = folder / "__init__.py"
    ours = not init.exists() or "memorybus_hermes" in init.read_text(errors="replace")
    if folder.is_symlink() or not ours:
        raise NotInstalled(f"{folder} holds another plugin; rename it, then run this again")


def remove_plugin(home: HermesHome) -> bool:
    """Delete the plugin's files; return False if there were none. Spooled events stay.

    Raises:
        NotInstalled: another plugin lies there.
    """
    _refuse_foreign_plugin(home.plugin_dir)
    if not home.plugin_dir.is_dir():
        return False
    for name in FILES:
        (home.plugin_dir / name).unlink(missing_ok=True)
    shutil.rmtree(home.plugin_dir / "__pycache__", ignore_errors=True)
    if not any(home.plugin_dir.iterdir()):
        home.plugin_dir.rmdir()
    return True


# -- the Python that runs Hermes ------------------------------------------------------------------


def hermes_python(
    search: Callable[[str], str | None] = shutil.which,
    find: Callable[[str], object | None] = find_spec,
) -> str:
    """Return the path of the Python that runs Hermes; "" if it is not found.

    The first line of the ``hermes`` command names it. If that names no Python, this process's own
    is returned, provided that Hermes is installed for it, too.

    Args:
        search: returns the path of a command, or None.
        find: returns None for a module that cannot be imported.
    """
    command = search("hermes")
    interpreter = _interpreter_of(command) if command else ""
    return interpreter or (sys.executable if find(_HERMES) else "")


def _interpreter_of(command: str) -> str:
    with Path(command).open("rb") as script:
        first = script.readline(4096).decode(errors="replace").strip()
    path = first.removeprefix("#!").split(maxsplit=1)[0] if first.startswith("#!") else ""
    return path if Path(path).name.startswith("python") and Path(path).is_file() else ""


def check_python(
    python: str, home: HermesHome, environ: Mapping[str, str], run: RunProcess = subprocess.run
) -> PythonCheck:
    """Run a Python and find out whether it can import the bus, and what its Hermes takes.

    Args:
        python: the interpreter's path; empty if none is known.
        run: starts a process, as `subprocess.run` does.
    """
    if not python:
        return PythonCheck("", "", _NO_HERMES)
    command = [python, "-P", "-m", probe.__name__]
    try:
        process = _run_in(home, command, environ, run, _PROBE_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        return PythonCheck(python, "", f"{python} does not answer: {error}")
    wanted = version(PLUGIN)
    report = PythonReport("", None)
    if process.returncode == 0:
        report = msgspec.json.decode(process.stdout.splitlines()[-1], type=prepared(PythonReport))
    remedy = "" if report.version == wanted else f"{python} -m {install_command(name=PLUGIN)}"
    return PythonCheck(python, report.version, remedy, report.placement)


def activate(
    home: HermesHome,
    python: str,
    environ: Mapping[str, str],
    run: RunProcess = subprocess.run,
    *,
    at_terminal: bool = False,
) -> str:
    """Run `hermes memory setup memorybus`, which makes the bus Hermes's memory provider.

    Args:
        run: starts a process, as `subprocess.run` does.

    Returns:
        What Hermes printed; "" at a terminal.

    Raises:
        NotInstalled: there is no Hermes, or Hermes refuses; the message contains its reason.
    """
    printed = _run_hermes(home, python, ("setup", PLUGIN), environ, run, at_terminal=at_terminal)
    if active_provider(home.config) != PLUGIN:
        raise NotInstalled(
            f"`hermes memory setup {PLUGIN}` did not make it active: {printed.strip()[-400:]}"
        )
    return printed


def deactivate(
    home: HermesHome, python: str, environ: Mapping[str, str], run: RunProcess = subprocess.run
) -> bool:
    """Run `hermes memory off` if the bus is Hermes's memory provider; return whether it was.

    Arguments are those of `activate`.

    Raises:
        NotInstalled: Hermes did not switch it off, or there is no Hermes.
    """
    if active_provider(home.config) != PLUGIN:
        return False
    try:
        printed = _run_hermes(home, python, ("off",), environ, run)
    except NotInstalled as error:
        raise NotInstalled(f"{_STILL_ON}: {error}; or run `hermes memory off`") from error
    if active_provider(home.config) == PLUGIN:
        raise NotInstalled(f"{_STILL_ON} after `hermes memory off`: {printed.strip()[-400:]}")
    return True


def list_remains(python: PythonCheck) -> list[str]:
    """Return what is still there after the plugin was removed, each with the command against it."""
    if not python.version:
        return []
    offered = python.placement and python.placement.directory
    where = "; `hermes memory setup` still offers it" if offered else ""
    command = f"{python.python} -m pip uninstall {PLUGIN}"
    return [f"the package {PLUGIN} {python.version}{where}. To remove it: {command}"]


def _run_hermes(
    home: HermesHome,
    python: str,
    words: Sequence[str],
    environ: Mapping[str, str],
    run: RunProcess,
    *,
    at_terminal: bool = False,
) -> str:
    """Run `hermes memory …`; return what it prints, or let it use this terminal."""
    if not python:
        raise NotInstalled(_NO_HERMES)
    command = [python, "-P", "-m", f"{_HERMES}.main", "memory", *words]
    if at_terminal:
        run(command, env={**environ, "HERMES_HOME": str(home.path)}, check=False)
        return ""
    process = _run_in(home, command, environ, run, _SETUP_TIMEOUT)
    if process.returncode != 0:
        output = (process.stderr or process.stdout).strip()[-400:]
        if f"No module named '{_HERMES}'" in output:
            raise NotInstalled(f"{python} has no Hermes; {_NAME_PYTHON}")
        raise NotInstalled(f"`hermes memory {' '.join(words)}` failed: {output}")
    return process.stdout


def _run_in(
    home: HermesHome,
    command: Sequence[str],
    environ: Mapping[str, str],
    run: RunProcess,
    timeout: float,
) -> "subprocess.CompletedProcess[str]":
    return run(
        command,
        env={**environ, "HERMES_HOME": str(home.path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


# -- what Hermes asks the plugin ------------------------------------------------------------------


def config_schema() -> list[dict[str, Any]]:
    """Return the settings that Hermes's set-up may ask for, in the form its ABC describes.

    Every setting has a default.
    """
    return [
        {
            "key": "url",
            "description": "Redis of the log; empty for the one that `memorybus up` starts",
        },
        {"key": "data_dir", "description": "Where spools and memories live; empty for the default"},
        {"key": "namespace", "description": "Prefix of every Redis key", "default": "mb"},
        {"key": "user", "description": "Your name in memories", "default": "default"},
    ]


def save_config(values: Mapping[str, Any], home: HermesHome) -> None:
    """Write settings into the home's ``memorybus.toml``; the other settings in it stay.

    Args:
        values: the answers to `config_schema`, by setting; an empty one is not written.

    Raises:
        ConfigError: a setting is unknown or wrong; then nothing is written.
        OSError: the file cannot be written.
    """
    answers = {name: str(values[name]) for name in _OFFERED_SETTINGS if values.get(name)}
    unknown = sorted(set(values) - set(Settings.__struct_fields__))
    if unknown:
        raise ConfigError(f"unknown settings: {', '.join(unknown)}")
    path = home.settings_file
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    fresh = path.with_suffix(".toml.new")
    private.write(fresh, _merge_settings(before, answers).encode())
    try:
        load(environ={"MEMORYBUS_CONFIG": str(fresh)})
    except ConfigError:
        fresh.unlink()
        raise
    fresh.chmod(private.FILE)  # a URL may hold a password, and an older file may have been public
    fresh.replace(path)


def _merge_settings(before: str, changes: Mapping[str, str]) -> str:
    """Return TOML text in which some top-level settings have new values."""
    lines = before.splitlines()
    end = next((n for n, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    kept = [line for line in lines[:end] if line.split("=", 1)[0].strip() not in changes]
    new = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in changes.items()]
    return "\n".join([*kept, *new, *lines[end:]]) + "\n"


def post_setup(home: HermesHome, config: dict[str, Any], run: RunProcess = subprocess.run) -> bool:
    """Run `memorybus hermes setup`, then make the bus the provider in Hermes's configuration.

    ``hermes memory setup`` calls this. The caller saves `config` as Hermes does.

    Args:
        config: Hermes's configuration; this function changes it.
        run: starts a process, as `subprocess.run` does.

    Returns:
        Whether `config` was changed; not if the set-up failed or was interrupted.
    """
    words = ("hermes", "setup", "--home", str(home.path))
    sys.stdout.flush()
    if run([sys.executable, "-P", "-m", PLUGIN, *words], check=False).returncode:
        return False
    memory = config.get("memory")
    config["memory"] = {**(memory if isinstance(memory, dict) else {}), "provider": PLUGIN}
    return True
