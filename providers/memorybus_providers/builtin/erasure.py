"""Which entries of the memory files are somebody's, and how they are taken out of a file.

A file is wholly its owner's: ``USER.md`` a person's, ``MEMORY.md`` an agent's. An entry in somebody
else's file belongs to those whose session wrote it: what an agent noted while it spoke with a
person belongs to both. For an entry written by hand, the writer is not known.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from memorybus_providers.base import RecallScope
from memorybus_providers.builtin import files
from memorybus_providers.builtin.entries import parse, render
from memorybus_providers.builtin.origins import EntryOrigin
from memorybus_providers.builtin.places import MemoryFile


def belongs_to(place: MemoryFile, origin: EntryOrigin, scope: RecallScope) -> bool | None:
    """Say whether an entry belongs to a scope; None if that is not known.

    Args:
        place: its file, which is the scope's owner's.
        origin: where it comes from.
        scope: whose entries are meant.
    """
    others = (scope.user if place.store == "memory" else scope.agent, scope.workspace)
    if others == (None, None):
        return True
    if origin.user is None:
        return None
    asked = ((scope.agent, origin.agent), (scope.user, origin.user))
    return all(want is None or want == held for want, held in asked) and (
        scope.workspace is None or scope.workspace == origin.workspace
    )


def take_out(home: Path, place: MemoryFile, goes: Callable[[str], bool]) -> tuple[list[str], int]:
    """Take entries out of a file; without any left, the file and its folder go.

    Args:
        home: the instance's.
        place: the file.
        goes: says whether an entry goes.

    Returns:
        The entries that stay, and how many went.

    Raises:
        OSError: the file cannot be written.
    """
    file = place.file(home)
    before = parse(files.read(file))
    kept = [entry for entry in before if not goes(entry)]
    if len(kept) < len(before):
        files.replace_text(home, file, render(kept))
    if not kept:
        files.remove(file)
    return kept, len(before) - len(kept)


def residue(unknown: int, folders: Iterable[Path]) -> tuple[str, ...]:
    """Return what an erasure leaves, in words.

    Args:
        unknown: entries of which nobody knows who wrote them.
        folders: of owners that are gone, with files in them which are not ours.
    """
    said = [f"{folder} holds files of somebody else's making" for folder in folders]
    if unknown:
        said.append(
            f"{unknown} entries of other people's or agents' files have no known writer (written "
            "by hand): look through MEMORY.md and USER.md"
        )
    return tuple(said)
