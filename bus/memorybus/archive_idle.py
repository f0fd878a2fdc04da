"""Which files of a partition's archive nobody needs any more; pure."""

from collections.abc import Mapping, Sequence

import msgspec

from memorybus.manifest import Manifest
from memorybus.object_store import Stored


class Idle(msgspec.Struct, frozen=True):
    """Files that may be deleted.

    Attributes:
        unnamed: those that no recent manifest names.
        outlived: those that only the older ones of them name; to be deleted when these are gone.
    """

    unnamed: Sequence[str] = ()
    outlived: Sequence[str] = ()


def idle(folder: str, recent: Sequence[Manifest], found: Mapping[str, Stored], before: int) -> Idle:
    """Return the segments that nobody needs.

    A file is needed for as long as a reader may still have the manifest that named it, which its
    own age does not tell: it counts from when its rows were written anew. Where a manifest is
    damaged, or the newest one names a file that is missing, all are: what it takes to mend that
    may be among them.

    Args:
        folder: the partition's.
        recent: its manifests, newest last.
        found: its segments by name.
        before: what was written, or written anew, since then stays (wall time, milliseconds).
    """
    files = [{f"{folder}/{one.file}" for one in manifest.segments} for manifest in recent]
    if not recent or not all(one.whole for one in recent) or not files[-1] <= found.keys():
        return Idle()
    old = [
        name
        for name, one in found.items()
        if name not in files[-1] and max(one.modified_at, _written_anew(recent[-1], name)) < before
    ]
    named = set[str]().union(*files)
    return Idle([one for one in old if one not in named], [one for one in old if one in named])


def _written_anew(newest: Manifest, name: str) -> int:
    """Return when the rows of a file that is not named were written anew; 0 if they were not."""
    first = name.rpartition("/")[2].partition("-")[0]
    n = int(first) if first.isdigit() else 0
    return max(
        (one.made_at for one in newest.segments if one.first.n <= n <= one.last.n), default=0
    )
