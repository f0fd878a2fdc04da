"""Homes: where the state of a `local` provider lies, so that its lanes and jobs stay there.

A place is one data directory: a random id in the file ``place``, made once. A copy of the directory
(a clone, a restored backup) has the same id, but its file has another inode.
"""

import contextlib
import os
import re
import shutil
import socket
from collections.abc import Iterable
from pathlib import Path

import msgspec
from filelock import FileLock
from redis import Redis

from memorybus import private
from memorybus.config.path_names import check_name
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, ForeignKey
from memorybus.ids import NewId, new_id
from memorybus.msgspec_types import prepared
from memorybus.redis import scripts
from memorybus.redis.connect import ask_redis
from memorybus.redis.keys import Keys

FILE = "place"
EMBEDDED = "embedded"
_ID = re.compile(r"[0-9a-f]{32}")


class Home(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place, and where it was last seen."""

    place: str  # the id of its data directory
    host: str  # the machine that saw it
    path: str = ""  # the data directory there
    # Distinguishes the original from a copy: the inode of its file ``place``. It is `EMBEDDED` if
    # the log lies in the directory too, because a copy then has its own log.
    mark: str = ""


def place_id(settings: Settings, make_id: NewId = new_id) -> str:
    """Return the id of the data directory, 32 hex digits; the first call makes it."""
    path = settings.data_dir / FILE
    try:
        text = _read_id(path) or _make_id(path, make_id)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; make data_dir writable") from error
    if not _ID.fullmatch(text):
        raise ConfigError(
            f"{path} does not contain a place's id; delete it, then move the home of local "
            f"providers here: memorybus provider move NAME"
        )
    return text


def _read_id(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except FileNotFoundError:
        return ""


def _make_id(path: Path, make_id: NewId) -> str:
    """Write a new id, all or nothing; the lock lets only one process do so."""
    private.directory(path.parent)
    with FileLock(path.with_suffix(".lock"), mode=private.FILE):
        if not path.exists():
            fresh = path.with_suffix(".new")
            with open(fresh, "w", opener=private.opener) as file:
                file.write(make_id() + "\n")
                file.flush()
                os.fsync(file.fileno())  # Redis will remember the id
            fresh.replace(path)
    return _read_id(path)


def local_home(settings: Settings, make_id: NewId = new_id) -> Home:
    """Return the home that this process can offer: its data directory, with an id."""
    return _build_home(settings, place_id(settings, make_id))


def find_local_home(settings: Settings) -> Home:
    """Do as `local_home` does, but write nothing: `place` is empty if there is no id yet."""
    is_place = (settings.data_dir / FILE).exists()
    return local_home(settings) if is_place else _build_home(settings, "")


def _build_home(settings: Settings, place: str) -> Home:
    mark = _read_mark(settings) if place else ""
    return Home(place, socket.gethostname(), str(settings.data_dir), mark)


def _read_mark(settings: Settings) -> str:
    """Return the inode of the file ``place``, or `EMBEDDED`; see `Home.mark`."""
    return str((settings.data_dir / FILE).stat().st_ino) if settings.url else EMBEDDED


def is_same_home(home: Home, ours: Home) -> bool:
    """Return whether our directory is the known home itself, and not a copy of it; pure.

    It is the home itself if it lies where the home was last seen, or if its file ``place`` is the
    same: the directory was renamed, or is a volume that another host mounts.
    """
    seen_here = (home.host, home.path) == (ours.host, ours.path)
    return home.place == ours.place and (seen_here or home.mark == ours.mark)


def home_elsewhere(home: Home | None, settings: Settings) -> Home | None:
    """Return a known home if it lies elsewhere; None if it is here, or if none is known."""
    return None if home is None or is_same_home(home, find_local_home(settings)) else home


def delete_state(settings: Settings, name: str) -> None:
    """Delete an instance's directory: below ``data_dir/providers`` only, and through no link."""
    home: Path = settings.provider_home(check_name(name))
    if home.is_symlink():
        home.unlink()  # what the link points to is not ours
    elif home.exists():
        shutil.rmtree(home)  # follows no link either


class Homes:
    """The hash of homes. Belongs to one thread."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._key = keys.homes

    def claim(self, provider: str, home: Home) -> Home:
        """Make `home` the provider's home if it has none yet, and return its home (G3, G4).

        The result equals `home` if and only if the state lies here. A home that was renamed or
        mounted elsewhere is noted anew. For the start of a worker.
        """
        seen = b""
        while True:
            previous = self._swap(provider, seen, home)
            if previous in (seen or None, msgspec.json.encode(home)):
                return home
            present = _decode_home(self._key, provider, previous or b"")
            if not is_same_home(present, home):
                return present
            seen = previous or b""

    def find_elsewhere(self, providers: Iterable[str], home: Home) -> dict[str, Home]:
        homes = self.all()
        holders = {name: homes.get(name) or self.claim(name, home) for name in providers}
        return {name: held for name, held in holders.items() if not is_same_home(held, home)}

    def all(self) -> dict[str, Home]:
        found: dict[bytes, bytes] = ask_redis(lambda: self._redis.hgetall(self._key), self._key)
        homes: dict[str, Home] = {}
        for name, body in sorted(found.items()):
            with contextlib.suppress(ForeignKey, UnicodeDecodeError):
                homes[name.decode()] = _decode_home(self._key, name.decode(), body)
        return homes

    def move(self, provider: str, home: Home) -> None:
        """Make `home` the provider's home, whatever it was before; no data is copied."""
        ask_redis(lambda: self._note(provider, home), self._key)

    def forget(self, provider: str) -> None:
        """Forget an instance's home: its state is gone, or nobody serves it any more."""
        ask_redis(lambda: self._redis.hdel(self._key, provider), self._key)

    def _note(self, provider: str, home: Home) -> None:
        call = scripts.write_fields(self._key, {provider: msgspec.json.encode(home)})
        scripts.run(self._redis, call)

    def _swap(self, provider: str, seen: bytes, home: Home) -> bytes | None:
        """Write `home` if the entry still is `seen`; return the entry as it was before."""
        body = msgspec.json.encode(home)
        call = scripts.change_field(self._key, provider, body, seen=seen)
        found: bytes | None = ask_redis(lambda: scripts.run(self._redis, call), self._key)
        return found


def _decode_home(key: str, provider: str, body: bytes) -> Home:
    try:
        return msgspec.json.decode(body, type=prepared(Home))
    except msgspec.MsgspecError as error:
        raise ForeignKey(
            f"{key}: the home of {provider} cannot be read ({error}); write it anew with "
            f"`memorybus provider move {provider} --yes` where its state is"
        ) from error
