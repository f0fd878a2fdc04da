"""The archive's files in an object store, through obstore; imported only where one is used."""

import contextlib
import io
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit, urlunsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import from_url

from memorybus.archive.objects.store import StoredFile
from memorybus.errors import ArchiveDamaged, ArchiveUnavailable

TIMEOUT = timedelta(seconds=30)  # the limit for one request with its body (G10)
CONNECT_TIMEOUT = timedelta(seconds=5)
RETRIES = 3
WHOLE_BYTES = 8 << 20
"""Files up to this size are fetched whole, and kept in memory while they are read (G10)."""

RANGE_BYTES = 1 << 20  # larger files are fetched in ranges of this size
RETRY_TIMEOUT = timedelta(seconds=20)
"""No retry begins later than this after the first request (G10)."""

_TRIAL_FILE = "written-once"
"""The file with which it is tested whether the store overwrites an existing file."""

_MAX_ERROR_CHARS = 300
_SECRET = re.compile(r"(?i)(signature|credential|token|key|secret)[\w-]*[=:]\s*\S+")


class RemoteObjects:
    """Files below a folder of a bucket."""

    def __init__(self, url: str, folder: str) -> None:
        parts = urlsplit(url)
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
        self._url = urlunsplit(bare).rstrip("/")
        self._folder = folder.strip("/")
        self._fenced = False
        untyped: Any = from_url
        with self._translated_errors(""):
            self._store = untyped(
                f"{self._url}/{self._folder}",
                client_options={
                    "timeout": TIMEOUT,
                    "connect_timeout": CONNECT_TIMEOUT,
                    "allow_http": True,  # the environment may name an http:// endpoint
                },
                retry_config={"max_retries": RETRIES, "retry_timeout": RETRY_TIMEOUT},
            )

    @property
    def where(self) -> str:
        return f"{self._url}/{self._folder}".rstrip("/")

    def put_new(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet; False if another is. See `Objects`."""
        self._check_fence()
        # An existing file may be ours: our first try arrived, but its answer was lost.
        return self._create(name, data) or self.get(name) == data

    def _create(self, name: str, data: bytes) -> bool:
        with self._translated_errors(name):
            try:
                obstore.put(self._store, name, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True

    def _check_fence(self) -> None:
        """Test once that the store does not overwrite files: some stores ignore the condition."""
        if not self._fenced and self._create(_TRIAL_FILE, b"") and self._create(_TRIAL_FILE, b""):
            raise ArchiveUnavailable(
                f"{self.where}: this store overwrites a file that exists, although it is asked "
                f"not to (If-None-Match: *), so two archivers could undo each other's work; use a "
                f"store, or a release of it, that supports conditional writes"
            )
        self._fenced = True

    def get(self, name: str) -> bytes | None:
        with self._translated_errors(name):
            try:
                return obstore.get(self._store, name).bytes().to_bytes()
            except FileNotFoundError:
                return None

    def open(self, name: str) -> BinaryIO | None:
        """Return a file to read at random places, None if there is no such file."""
        with self._translated_errors(name):
            try:
                size = obstore.head(self._store, name)["size"]
            except FileNotFoundError:
                return None
        if size > WHOLE_BYTES:
            return cast("BinaryIO", io.BufferedReader(_Ranges(self, name, size), RANGE_BYTES))
        data = self.get(name)
        return None if data is None else io.BytesIO(data)

    def read_range(self, name: str, start: int, end: int) -> bytes:
        with self._translated_errors(name):
            try:
                return obstore.get_range(self._store, name, start=start, end=end).to_bytes()
            except FileNotFoundError as error:
                raise ArchiveDamaged(
                    f"{self.where}/{name}: is missing; restore it from a backup"
                ) from error

    def path_of(self, name: str) -> str:
        """Return "": no file lies on this host's disk."""
        return ""

    def list(self, folder: str) -> list[StoredFile]:
        with self._translated_errors(folder):
            objects = obstore.list_with_delimiter(self._store, folder or None)["objects"]
        stored = [
            StoredFile(one["path"], one["size"], round(one["last_modified"].timestamp() * 1000))
            for one in cast("Any", objects)
        ]
        return sorted(stored, key=lambda file: file.name)

    def leftovers(self, folder: str) -> Sequence[StoredFile]:
        """Return nothing: one request writes a file as a whole."""
        return []

    def delete(self, name: str) -> None:
        with self._translated_errors(name), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._store, name)

    @contextlib.contextmanager
    def _translated_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            message = str(error).partition("Debug source")[0]
            text = " ".join(_SECRET.sub(r"\1=…", message).split())[:_MAX_ERROR_CHARS]
            raise ArchiveUnavailable(
                f"{self.where}/{name}: {text or type(error).__name__}; check the network, the "
                f"credentials in the environment and the rights on the bucket"
            ) from error


class _Ranges(io.RawIOBase):
    """A file in an object store, read by ranges."""

    def __init__(self, objects: RemoteObjects, name: str, size: int) -> None:
        super().__init__()
        self._objects = objects
        self._name = name
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._size, self._at + len(buffer))
        if end <= self._at:
            return 0
        data = self._objects.read_range(self._name, self._at, end)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
