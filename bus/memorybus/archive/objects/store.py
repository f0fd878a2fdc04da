"""Where the archive's files lie: a directory, or an object store; one small interface for both."""

from collections.abc import Sequence
from typing import BinaryIO, Protocol

import msgspec

from memorybus.errors import ArchiveUnavailable, install_command


class StoredFile(msgspec.Struct, frozen=True):
    """A file: its name, its size in bytes, and when it was written (wall time, milliseconds)."""

    name: str
    size: int
    modified_at: int


class Objects(Protocol):
    """Files by name, with ``/``; `ArchiveUnavailable` if the store does not answer."""

    @property
    def where(self) -> str: ...

    def put_new(self, name: str, data: bytes) -> bool:
        """Write a new durable file, whole or not at all; False if other bytes have its name."""
        ...

    def get(self, name: str) -> bytes | None: ...

    def open(self, name: str) -> BinaryIO | None: ...

    def path_of(self, name: str) -> str:
        """Return where a file lies on this host's disk; "" if it lies elsewhere."""
        ...

    def list(self, folder: str) -> list[StoredFile]: ...

    def leftovers(self, folder: str) -> Sequence[StoredFile]:
        """Return the incomplete files directly in a folder, of writers that died or still write."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file; a missing file is no error."""
        ...


MISSING_EXTRA = "the extra `archive`"
"""What the error names if the libraries of the archive are not installed."""


def missing_extra_error(error: ImportError) -> ArchiveUnavailable:
    return ArchiveUnavailable(
        f"the archive needs {error.name or 'pyarrow and obstore'}, of {MISSING_EXTRA}; "
        f"run: {install_command('archive')}"
    )
