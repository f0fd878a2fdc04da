"""Decides which entries of the memory files belong to a scope, and takes them out of a file.

All entries of a file belong to its owner: ``USER.md`` to a person, ``MEMORY.md`` to an agent. An
entry also belongs to everybody whose session wrote it: what an agent noted while it spoke with a
person belongs to both. If a person wrote an entry with an editor, the writer is not known.
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
        place: the entry's file, whose owner is the agent or the person of the scope.
        origin: the write that made the entry.
        scope: the scope whose entries are erased or exported.
    """
    others = (scope.user if place.store == "memory" else scope.agent, scope.workspace)
    if others == (None, None):
        return True
    if origin.user is None:
        return None
    asked = ((scope.agent, origin.agent), (scope.user, origin.user))
    return all(want is None or want == owned for want, owned in asked) and (
        scope.workspace is None or scope.workspace == origin.workspace
    )


def take_out(home: Path, place: MemoryFile, goes: Callable[[str], bool]) -> tuple[list[str], int]:
    """Take entries out of a file; if none is left, remove the file and its folder.

    Args:
        home: the home of the instance.
        place: the file.
        goes: says whether an entry is taken out.

    Returns:
        The entries that stay, and how many were taken out.

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
    """Return sentences about what an erasure leaves.

    Args:
        unknown: the number of entries whose writer is not known.
        folders: folders of erased owners that contain other files than ours.
    """
    said = [f"{folder} holds files of somebody else's making" for folder in folders]
    if unknown:
        said.append(
            f"{unknown} entries of other people's or agents' files have no known writer (written "
            "by hand): look through MEMORY.md and USER.md"
        )
    return tuple(said)
