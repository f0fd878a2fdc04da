"""What `memorybus doctor` says of this host's files."""

import shutil
from contextlib import suppress
from pathlib import Path

import msgspec

from memorybus.errors import MemoryBusError
from memorybus.monitor import read_status
from memorybus.settings import Settings
from memorybus.spool_files import inspect
from memorybus.surfaces.check import Check

HEADROOM = 256 << 20
"""Free bytes below which a disk is called nearly full."""


def spool(settings: Settings) -> Check:
    """Check that the spool's directory can be written and has room."""
    place = settings.spool_dir
    try:
        place.mkdir(parents=True, exist_ok=True)
        _try_write(place)
        free = shutil.disk_usage(place).free
    except OSError as error:
        fix = f"make {place} writable, or choose another data_dir"
        return Check(name="spool", ok=False, found=f"{place}: {error}", fix=fix)
    ok = free >= HEADROOM
    found = f"{place} is writable, {free >> 20} MiB free"
    return Check(name="spool", ok=ok, found=found, fix="" if ok else f"make room on {place}")


def _try_write(place: Path) -> None:
    probe = place / ".doctor"
    probe.write_bytes(b"?")
    probe.unlink()


def other_spools(settings: Settings) -> Check:
    """Check that no event waits here for another Redis or namespace than the configured one."""
    places = sorted({path.parent for path in settings.spool_dir.parent.glob("*/*.db")})
    counts = {place: _waiting(settings, place) for place in places if place != settings.spool_dir}
    found = [f"{count} in {place}" for place, count in counts.items() if count]
    if not found:
        return Check(name="other spools", ok=True, found="nothing waits for another Redis")
    return Check(
        name="other spools",
        ok=False,
        found=f"events not known to have reached their own Redis and namespace, and waiting for "
        f"it: {', '.join(found)}",
        fix="run memorybus up once with that --url and --namespace: it sends them",
    )


def _waiting(settings: Settings, place: Path) -> int:
    """Count a directory's unsent events; only our own Redis can be asked which it has."""
    namespace, _, where = place.name.rpartition("-")
    if settings.spool_dir.name.endswith(f"-{where}"):
        with suppress(MemoryBusError):
            other = msgspec.structs.replace(settings, namespace=namespace)
            return read_status(other).spool.events
    return sum(inspect(path, {}).events for path in place.glob("*.db"))
