"""The doctor's checks of the log itself: is it whole and archived, can it be kept, how long.

A warning passes, with its remedy: the memory is full within three days. Within one day it fails.
"""

from collections.abc import Iterator, Sequence

from memorybus.config.settings import Settings
from memorybus.errors import LogError
from memorybus.health.alarms import Alarm, Code
from memorybus.health.archive_status import ArchiveStatus, told_archive
from memorybus.health.finding import Check
from memorybus.health.log_health import Health, read_health
from memorybus.log.forecast import told, told_disk

_KINDS: dict[str, tuple[Code, ...]] = {
    "continuity": ("data_loss", "numbering", "strays"),
    "persistence": ("persistence",),
    "memory": ("memory",),
    "disk": ("disk",),
    "archive": ("archive", "archive_ahead"),
}
_HINDERED = "do as the message says, and restart the workers; Redis keeps every event until then"
_ABSENT = "let a worker run where the archive can be reached; Redis keeps every event until then"


def check_log(settings: Settings) -> Iterator[Check]:
    """Check that the log is whole, and that Redis can go on keeping it (G1, G7, G10)."""
    try:
        health = read_health(settings)
    except LogError as error:
        fix = "see the checks of Redis above"
        yield Check(name="continuity", ok=False, found=str(error), fix=fix)
        return
    yield from checks(health)


def checks(health: Health) -> Iterator[Check]:
    """Return the checks of one look, in order; eviction and durability have checks of their own."""
    well = {
        "continuity": "no number is missing in the log",
        "persistence": "Redis can write what it is given",
        "memory": told(health.memory),
        "archive": told_archive(health.archive),
    }
    if health.disk is not None:
        well["disk"] = told_disk(health.disk)
    for name, found in well.items():
        check = _check(name, found, [a for a in health.alarms if a.code in _KINDS[name]])
        yield trimmed(check, health.archive) if name == "archive" else check


def trimmed(check: Check, archive: ArchiveStatus) -> Check:
    """Return a check of the archive that fails if nothing is ever trimmed, and warns if for now.

    Redis fills up meanwhile (G7), however long it takes until its memory is an alarm.
    """
    if archive.working:
        return check
    return Check(
        name=check.name,
        ok=check.ok and not archive.hindered,
        found=told_archive(archive) if not check.fix else check.found,
        fix=check.fix or (_HINDERED if archive.hindered else _ABSENT),
    )


def _check(name: str, well: str, alarms: Sequence[Alarm]) -> Check:
    critical = any(alarm.severity == "critical" for alarm in alarms)
    return Check(
        name=name,
        ok=not critical,
        found="; ".join(alarm.text for alarm in alarms) or well,
        fix="; ".join(dict.fromkeys(alarm.remedy for alarm in alarms)),
    )
