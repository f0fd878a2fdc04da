"""Checks this host for the doctor: its Python, its Redis server, its files."""

import platform
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.config.settings import Settings
from memorybus.embedded.binary import find_server_binary
from memorybus.errors import MemoryBusError
from memorybus.health.finding import Check
from memorybus.health.monitor import read_status
from memorybus.outbox.files import inspect_spool

HEADROOM_BYTES = 256 << 20
"""Free bytes below which a disk is called nearly full."""

_MAX_NAMED = 3
"""How many files that others can read are named."""


def check_python() -> Check:
    """Show the interpreter; this cannot fail, since the package does not install on an old one."""
    shown = ".".join(map(str, sys.version_info[:3]))
    return Check(name="python", ok=True, found=f"{shown} ({platform.python_implementation()})")


def check_server_binary(settings: Settings) -> Check:
    """Check that the embedded server could be started, unless a URL says it is not needed.

    Raises:
        MemoryBusError: no server was found that is new enough.
    """
    if settings.url:
        return Check(name="server binary", ok=True, found="not needed: a url is configured")
    binary = find_server_binary()
    return Check(name="server binary", ok=True, found=f"{binary.path} ({binary.name})")


def check_spool(settings: Settings) -> Check:
    """Check that the spool's directory can be written and has room."""
    place = settings.spool_dir
    try:
        private.directory(place)
        _try_write(place)
        free = shutil.disk_usage(place).free
    except OSError as error:
        fix = f"make {place} writable, or choose another data_dir"
        return Check(name="spool", ok=False, found=f"{place}: {error}", fix=fix)
    ok = free >= HEADROOM_BYTES
    found = f"{place} is writable, {free >> 20} MiB free"
    return Check(name="spool", ok=ok, found=found, fix="" if ok else f"make room on {place}")


def _try_write(place: Path) -> None:
    probe = place / ".doctor"
    private.write(probe, b"?")
    probe.unlink()


def check_other_spools(settings: Settings) -> Check:
    """Check that no event waits on this host for a Redis or namespace that is not configured."""
    places = sorted({path.parent for path in settings.spool_dir.parent.glob("*/*.db")})
    counts = {
        place: _count_waiting(settings, place) for place in places if place != settings.spool_dir
    }
    found = [f"{count} in {place}" for place, count in counts.items() if count]
    if not found:
        return Check(name="other spools", ok=True, found="no unsent events for another Redis")
    return Check(
        name="other spools",
        ok=False,
        found=f"unsent events for another Redis or namespace: {', '.join(found)}",
        fix="run memorybus up once with that --url and --namespace: it sends them",
    )


def _count_waiting(settings: Settings, place: Path) -> int:
    """Count a directory's unsent events, without those that the configured Redis has already."""
    namespace, _, where = place.name.rpartition("-")
    if settings.spool_dir.name.endswith(f"-{where}"):
        with suppress(MemoryBusError):
            other = msgspec.structs.replace(settings, namespace=namespace)
            return read_status(other).spool.events
    return sum(inspect_spool(path, {}).events for path in place.glob("*.db"))


def check_privacy(settings: Settings) -> Check:
    """Check that no other user of this machine can read the memories; ignore symbolic links."""
    roots = [root for root in (settings.data_dir, _local_archive(settings)) if root is not None]
    found = [f"{path} ({mode:04o})" for root in roots for path, mode in _readable_by_others(root)]
    if not found:
        return Check(name="privacy", ok=True, found="only this user can read the files")
    more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    return Check(
        name="privacy",
        ok=False,
        found=f"other users can read: {', '.join(found[:_MAX_NAMED])}{more}",
        fix=f"run: chmod -R go-rwx {shlex.join(map(str, roots))}",
    )


def _local_archive(settings: Settings) -> Path | None:
    """Return the archive's directory; None if the archive is elsewhere, or below `data_dir`."""
    place = settings.archive.removeprefix("file://")
    return Path(place) if place and "://" not in place and Path(place).is_dir() else None


def _readable_by_others(root: Path) -> Iterator[tuple[Path, int]]:
    """Yield the files that others may read, with their modes, even inside closed directories.

    A copy of such a file elsewhere would be readable."""
    for path in (root, *sorted(root.rglob("*"))):
        with suppress(FileNotFoundError):  # other processes write and delete meanwhile
            known = path.lstat()
            if known.st_mode & 0o077 and not stat.S_ISLNK(known.st_mode):
                yield path, stat.S_IMODE(known.st_mode)
