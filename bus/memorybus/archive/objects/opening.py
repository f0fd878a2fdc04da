"""Opens the place of an archive: a directory, or an object store by its URL."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from memorybus.archive.objects.store import Objects, missing_extra_error
from memorybus.errors import ConfigError

REMOTE_SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss")  # schemes of object stores


def directory_of(place: str) -> Path | None:
    scheme, mark, _ = place.partition("://")
    if not mark:
        return Path(place).expanduser().absolute()
    if scheme in REMOTE_SCHEMES:
        return None
    parts = urlsplit(place)
    if scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return Path(unquote(parts.path))
    schemes = ", ".join(f"{one}://" for one in ("file", "s3", "gs", "az"))
    raise ConfigError(f"archive: {scheme}:// is not supported; use a directory or {schemes}")


def open_objects(place: str, folder: str = "") -> Objects:
    """Return the files below a folder of a place; nothing is read or created yet."""
    directory = directory_of(place)
    if directory is not None:
        from memorybus.archive.objects.local import LocalObjects

        return LocalObjects(directory / folder)
    try:
        from memorybus.archive.objects.remote import RemoteObjects
    except ImportError as error:
        raise missing_extra_error(error) from error
    return RemoteObjects(place, folder)
