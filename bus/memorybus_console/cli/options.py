"""What commands have in common: their groups, options, validators, and the operator's name."""

import getpass
import math
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter, Token
from memorybus.clock import SYSTEM
from memorybus.config.settings import LogForm, LogLevel, Settings, config_path, load
from memorybus.text.display import iso
from memorybus.text.times import parse_ago, parse_timestamp

from memorybus_console.operations.settings import MEANINGS
from memorybus_console.views.output import Output

RUN = Group("Run", sort_key=1)
MEMORIES = Group("Memories", sort_key=2)
INSPECT = Group("Inspect", sort_key=3)
OPERATE = Group("Operate", sort_key=4)

FlagOption = Annotated[bool, Parameter(negative="")]
RepeatedOption = Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)]
InstanceOption = Annotated[str, Parameter(help="The provider instance.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """The options of every command; memorybus.toml and MEMORYBUS_* may set them too."""

    json: Annotated[bool, Parameter(negative="", help="Print the result as JSON.")] = False
    url: Annotated[str | None, Parameter(help=MEANINGS["url"])] = None
    data_dir: Annotated[Path | None, Parameter(help=MEANINGS["data_dir"])] = None
    namespace: Annotated[str | None, Parameter(help=MEANINGS["namespace"])] = None

    def settings(self) -> Settings:
        """Return the settings: file, environment, then these options."""
        return load(**self.overrides())

    def overrides(self) -> dict[str, Any]:
        """Return the settings that these options override; None for those not given."""
        return {
            "url": self.url,
            "data_dir": None if self.data_dir is None else self.data_dir.absolute(),
            "namespace": self.namespace,
        }

    def output(self) -> Output:
        """Return the streams to print to."""
        return Output(json=self.json)


DEFAULT = Common()


def settings_file() -> str:
    """Return the absolute path of the settings file that commands read here; "" if none."""
    path = config_path()
    return str(path.absolute()) if path else ""


def to_absolute_time(_: Any, tokens: Sequence[Token]) -> str:
    """Convert an argument that says how long ago (``2h``, ``7d``) to its time in ISO 8601."""
    text = tokens[0].value
    at = parse_ago(text, SYSTEM.now_ms())
    return (at and iso(at)) or text


def positive(_: Any, value: float | None) -> None:
    """Validate that a number, if one is given, is more than 0."""
    if value is not None and not 0 < value < math.inf:
        raise ValueError("It must be a number greater than 0.")


def not_negative(_: Any, value: float | None) -> None:
    """Validate that a number, if one is given, is not negative."""
    if value is not None and not 0 <= value < math.inf:
        raise ValueError("It must be a number, 0 or greater.")


def check_time(_: Any, text: str | None) -> None:
    """Validate a time, if one is given."""
    try:
        parse_timestamp(text or 0)
    except ValueError:
        raise ValueError(
            "Give an ISO 8601 time (2026-05-31T18:00), or how long ago (2h)."
        ) from None


def check_names(_: Any, text: str | None) -> None:
    """Validate that a list, if one is given, has at least one name."""
    if text is not None and not split_names(text):
        raise ValueError("It must have at least one name.")


def split_names(text: str | None) -> tuple[str, ...]:
    """Return the names of a comma-separated list."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


_WORKER_SETTINGS = ("concurrency", "capacity", "grace", "log", "log_level")
"""The settings that `WorkerOptions` overrides in addition."""


@Parameter(name="*")
@dataclass(frozen=True)
class WorkerOptions(Common):
    """The options of a command that runs workers until it is stopped."""

    json: Annotated[
        bool, Parameter(negative="", help="Print one JSON line each time a worker is ready.")
    ] = False
    concurrency: Annotated[
        int | None, Parameter(help=MEANINGS["concurrency"], validator=positive)
    ] = None
    capacity: Annotated[float | None, Parameter(help=MEANINGS["capacity"], validator=positive)] = (
        None
    )
    grace: Annotated[float | None, Parameter(help=MEANINGS["grace"], validator=positive)] = None
    log: Annotated[LogForm | None, Parameter(help=MEANINGS["log"])] = None
    log_level: Annotated[LogLevel | None, Parameter(help=MEANINGS["log_level"])] = None

    def overrides(self) -> dict[str, Any]:
        """Return the settings that these options override; None for those not given."""
        own = {name: getattr(self, name) for name in _WORKER_SETTINGS}
        return super().overrides() | own


DEFAULT_WORKER = WorkerOptions()


def operator() -> str:
    """Return who runs the command, as ``user@host``; it is recorded with what they do."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
