"""Finds a Hermes home, its profile, what its ``config.yaml`` switches, and the bus's settings.

The rules are those of Hermes 0.19.0 (``hermes_constants``, ``hermes_cli.profiles``), which is not
imported: the home is ``HERMES_HOME``, or else ``~/.hermes``; a profile is a home below
``profiles/`` of the root.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from memorybus import Settings, load

PLUGIN = "memorybus"
WORKSPACE = "hermes"  # the value that Hermes passes as ``agent_workspace``

_PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class HermesHome(msgspec.Struct, frozen=True):
    """One HERMES_HOME."""

    path: Path  # the directory, absolute
    profile: str  # the name Hermes gives it: `default`, a profile's, or `custom`

    @property
    def plugin_dir(self) -> Path:
        return self.path / "plugins" / PLUGIN

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def state_db(self) -> Path:
        return self.path / "state.db"

    @property
    def memories(self) -> Path:
        """The directory of MEMORY.md and USER.md."""
        return self.path / "memories"

    @property
    def settings_file(self) -> Path:
        """The file of the bus's settings for this Hermes; it need not exist."""
        return self.path / "memorybus.toml"

    def initialize_arguments(self, platform: str, user: str = "") -> dict[str, str]:
        """Return what Hermes passes to `initialize` for a session of this home (see `scopes`).

        Args:
            platform: the ``source`` of the session.
            user: the gateway's user id; empty for the person at the terminal.
        """
        return {
            "agent_identity": self.profile,
            "agent_workspace": WORKSPACE,
            "platform": platform,
            "user_id": user,
        }

    def settings(self, **given: Any) -> Settings:
        """Return the settings of the plugin in this home.

        A settings file in the working directory is ignored: an agent works in other people's
        projects, and a file there must not decide where its memories go.

        Args:
            given: options of the command line; None counts as not given.

        Raises:
            ConfigError: a setting is wrong.
        """
        return load(directory=self.path, **given)


def find_home(given: Path | None = None, environ: Mapping[str, str] | None = None) -> HermesHome:
    """Return the Hermes home to use.

    Args:
        given: the home that the caller names, if any; otherwise ``HERMES_HOME`` or ``~/.hermes``.
        environ: the environment; the process's own if None.
    """
    env = os.environ if environ is None else environ
    native = Path(env.get("HOME") or Path.home()) / ".hermes"
    named = env.get("HERMES_HOME", "").strip()
    path = (given or (Path(named) if named else native)).expanduser().absolute()
    return HermesHome(path, profile_of(path, native))


def user_home() -> Path:
    return Path(os.environ.get("HOME") or Path.home())


def environment() -> Mapping[str, str]:
    return os.environ


def profile_of(path: Path, native: Path) -> str:
    """Return the profile's name of a home, as Hermes infers it.

    Args:
        native: the default home, ``~/.hermes``.
    """
    home, standard = path.resolve(), native.resolve()
    root = standard if home.is_relative_to(standard) else _own_root(home)
    if home == root:
        return "default"
    below = home.parent == root / "profiles" and _PROFILE.fullmatch(home.name)
    return home.name if below else "custom"


def _own_root(home: Path) -> Path:
    """Return the root of a home outside ``~/.hermes``: itself, or the parent of ``profiles``."""
    return home.parent.parent if home.parent.name == "profiles" else home


_YES = frozenset(("true", "yes", "on", "1"))
_NO = frozenset(("false", "no", "off", "0"))


def active_provider(path: Path) -> str:
    """Return ``memory.provider`` of a configuration; "" if none is set or there is no file."""
    return _value(path, "memory", "provider")


def checkpoint_required(path: Path) -> bool:
    """Return ``compression.checkpoint_required``: messages must be saved before a compression."""
    return _value(path, "compression", "checkpoint_required").lower() in _YES


def isolates_plugins(path: Path) -> bool:
    """Return whether ``plugins.isolation`` makes Hermes run plugins in a process of its own."""
    return _value(path, "plugins", "isolation").lower() == "host"


def curates_skills(path: Path) -> bool:
    """Return whether Hermes's own curator ages skills, which it does unless it is switched off."""
    return _value(path, "curator", "enabled").lower() not in _NO


def _value(path: Path, table: str, key: str) -> str:
    """Return the value of a key in one of the file's tables as written; "" if there is none."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    entry = rf"{key}:[ ]*['\"]?(?P<value>[\w.-]*)"
    in_braces = re.compile(rf"{table}:[ ]*\{{(?:[^{{}}]*,)?[ ]*{entry}")
    match = next(filter(None, map(in_braces.match, lines)), None)
    match = match or _find_in_table(
        list(_table_lines(lines, table)), re.compile(rf"(?P<indent>[ ]*){entry}")
    )
    return match["value"] if match else ""


def _table_lines(lines: list[str], name: str) -> Iterator[str]:
    """Yield the lines of a table without blank lines and comments."""
    inside = False
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line[0].isspace():
            inside = line.split("#", 1)[0].rstrip() == f"{name}:"
        elif inside:
            yield line


def _find_in_table(lines: list[str], key: re.Pattern[str]) -> re.Match[str] | None:
    """Return the key of the table itself, not of a table within it."""
    indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    matches = filter(None, map(key.match, lines))
    return next((match for match in matches if len(match["indent"]) == indent), None)
