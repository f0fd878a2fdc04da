"""Finds time zones, which say when a day begins."""

from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memorybus.errors import ConfigError

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
