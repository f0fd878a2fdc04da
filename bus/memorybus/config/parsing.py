"""Converts settings, also time zones, from texts and back; errors name the setting."""

import difflib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from memorybus.errors import ConfigError, UnknownSetting
from memorybus.events import LARGEST_BODY
from memorybus.msgspec_types import prepared

PREFIX = "MEMORYBUS_"
_T = TypeVar("_T")

_MAY_BE_ZERO = frozenset(
    (
        "compress_min_bytes",
        "compress_wait",
        "curator_every",
        "hot_window",
        "opening_wait",
        "prefetch_deadline",
        "prefetch_wait",
        "prompt_budget",
        "recall_budget",
        "recall_wait",
        "recorded_prompts",
        "seal_after",
        "segment_age",
        "spool_reserve",
        "spool_keep",
    )
)

_SHARES = frozenset(("recorded_prompts",))

_SECRET = re.compile(
    r"(?i)((api|access|private|secret|auth|account)[-_]?key|token|secret|password|passwd|pwd"
    r"|passphrase|credentials?)$"
)


def parse_table(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{PREFIX}{name.upper()} must be a JSON object: {error}") from error


def format_value(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    is_table = isinstance(value, dict | msgspec.Struct)
    return msgspec.json.encode(value).decode() if is_table else str(value)


_SUCCESSORS: Mapping[str, str] = {
    "spool_ballast": "spool_reserve",
    "notify": "the command `memorybus check --notify URL --every 60`",
}
"""What replaces settings of former names."""


def check_names(values: Mapping[str, Any], source: str, known: Sequence[str]) -> None:
    for name in values:
        if name in _SUCCESSORS:
            raise UnknownSetting(f"{source}: the setting {name!r} is now {_SUCCESSORS[name]}")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            raise UnknownSetting(f"{source}: unknown setting {name!r}; did you mean {near[0]!r}?")


def check_size(most: int) -> None:
    """Refuse a bound of events that is larger than the largest event that readers accept."""
    if most > LARGEST_BODY:
        raise ConfigError(f"event_max_bytes must be at most {LARGEST_BODY} (64 MiB), not {most}")


def convert_settings(values: Mapping[str, Any], kind: type[_T]) -> _T:
    try:
        return msgspec.convert(dict(values), prepared(kind), strict=False, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise ConfigError(_name_setting(str(error), kind)) from error


def _name_setting(said: str, kind: type) -> str:
    """Return msgspec's message with the setting's names in the file and in the environment."""
    what, _, path = said.partition(" - at `$.")
    place = path.rstrip("`")
    name = place.split(".")[0].split("[")[0]
    if not name:
        return f"settings: {what}"
    hint = get_type_hints(kind).get(name)
    those = f"; there are: {', '.join(get_args(hint))}" if get_origin(hint) is Literal else ""
    return f"{place} ({PREFIX}{name.upper()}): {what}{those}"


def _decode(kind: type, value: Any) -> Any:
    if kind is Path:
        if not str(value):
            raise ConfigError("data_dir is empty: leave it out, or name a directory")
        return Path(value).expanduser().absolute()
    raise NotImplementedError(f"no setting of type {kind}")


def check_numbers(values: Mapping[str, Any]) -> None:
    """Refuse numbers that are infinite or negative, 0 where that makes no sense, or no share."""
    for name, value in values.items():
        if name in _SHARES and not 0 <= value <= 1:
            raise ConfigError(f"{name} must be 0 to 1, not {value}")
        if isinstance(value, int | float):
            possible = value >= 0 if name in _MAY_BE_ZERO else value > 0
            if not (possible and math.isfinite(value)):
                raise ConfigError(f"{name} must be a positive number, not {value}")


def secrets_in(value: Any, name: str = "") -> Iterator[str]:
    """Yield the credentials in a value: texts with a name like ``token``, and URLs' passwords."""
    if isinstance(value, Mapping):
        for inner, item in value.items():
            yield from secrets_in(item, str(inner))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from secrets_in(item, name)
    elif isinstance(value, str) and _SECRET.search(name):
        yield value
    elif isinstance(value, str) and "://" in value:
        yield from _secrets_in_url(value)


def _secrets_in_url(url: str) -> Iterator[str]:
    place, _, options = url.partition("://")[2].partition("?")
    password = place.rpartition("@")[0].partition(":")[2]
    given = (option.partition("=") for option in options.split("&"))
    for secret in (password, *(value for name, _, value in given if _SECRET.search(name))):
        if secret:
            yield secret
            yield unquote(secret)


HOST_ZONE_FILE = Path("/etc/localtime")
"""The file with the zone of a host, in the format of tzfile(5)."""


def zone_named(name: str) -> tzinfo:
    """Return a zone of the IANA database. `ConfigError`: there is no zone of this name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"timezone {name!r} is not known here: give a name such as Europe/Berlin or UTC; if "
            "this host has no zones at all, run: pip install tzdata"
        ) from error


@cache
def host_zone(named: str, file: Path = HOST_ZONE_FILE) -> tzinfo:
    """Return the zone of this host; UTC if it does not say."""
    try:
        return zone_named(named.removeprefix(":"))
    except ConfigError:
        pass
    try:
        with file.open("rb") as data:
            return ZoneInfo.from_file(data)
    except (OSError, ValueError):
        return UTC
