"""The zone whose clocks say when a day begins."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import pytest
from memorybus.config.parsing import host_zone, zone_named
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError

SUMMER = datetime(2026, 7, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", ["Mars/Base", "../etc/passwd", "", "a\0b"])
def test_a_zone_that_is_none_is_refused(name):
    """The error says what a name looks like; no file outside the zones is read."""
    with pytest.raises(ConfigError, match="Europe/Berlin"):
        zone_named(name)


def test_the_setting_is_checked_when_it_is_read():
    """A wrong zone ends the program at once, not at the first question."""
    with pytest.raises(ConfigError, match="Mars/Base"):
        Settings(timezone="Mars/Base")
    assert Settings(timezone="Asia/Tokyo").zone == ZoneInfo("Asia/Tokyo")


def test_a_hosts_zone_is_that_of_its_variable_or_its_file(tmp_path):
    """TZ counts first if it names a zone, then the file; without both it is UTC."""
    paris = next(file for root in TZPATH if (file := Path(root) / "Europe/Paris").exists())
    assert host_zone(":Asia/Tokyo", paris) == ZoneInfo("Asia/Tokyo")
    for unread in ("", "CET-1CEST"):
        zone = host_zone(unread, paris)
        assert SUMMER.replace(tzinfo=zone).utcoffset() == timedelta(hours=2)
    assert host_zone("", tmp_path / "none") is UTC
    broken = tmp_path / "broken"
    broken.write_text("no zone")
    assert host_zone("", broken) is UTC
