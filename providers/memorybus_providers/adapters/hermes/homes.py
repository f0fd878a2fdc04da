"""Which HERMES_HOME is whose: a plugin that does not keep persons apart gets one for each."""

import contextlib
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.ids import text_digest

from memorybus_providers.adapters.owners import Owner


class Place(msgspec.Struct, frozen=True):
    """Where a child works: a directory of the provider, and the HERMES_HOME."""

    directory: Path
    home: Path


def place_of(own: Place, owner: Owner, first: Owner) -> Place:
    """Return an owner's place: the instance's own for `first`, a place below it for others."""
    if owner == first:
        return own
    directory = own.directory / "owners" / text_digest(f"{owner.agent}\0{owner.user}")
    return Place(directory, directory / "hermes")


def make_home(home: Path, source: Path, plugin: str) -> None:
    """Make a HERMES_HOME; what is configuration, and no memory, is linked from `source`."""
    private.directory(home)
    if home == source:
        return
    for name in (".env", "config.yaml", "plugins", f"{plugin}.json", f"{plugin}/config.json"):
        if (source / name).exists():
            private.directory((home / name).parent)
            with contextlib.suppress(FileExistsError):
                (home / name).symlink_to((source / name).absolute())
