"""Which files of a partition's archive nobody needs any more; pure."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from memorybus.archive.format.manifest import Manifest, Segment
from memorybus.archive.objects.store import StoredFile


class UnneededFiles(msgspec.Struct, frozen=True):
    """Files that may be deleted.

    Attributes:
        unnamed: those that no recent manifest names.
        outlived: those that only the older ones of them name; to be deleted when these are gone.
    """

    unnamed: Sequence[str] = ()
    outlived: Sequence[str] = ()


def idle(
    folder: str,
    recent: Sequence[Manifest],
    found: Mapping[str, StoredFile],
    before: int,
    damaged: Collection[str] = (),
) -> UnneededFiles:
    """Return the segments that nobody needs.

    A file is needed for as long as a reader may still have the manifest that named it, which its
    own age does not tell: it counts from when its rows were written anew. Where a manifest is
    damaged, or the newest one names a file that is missing, all are: what it takes to mend that
    may be among them. So may be, for a segment that cannot be read, what has rows of its numbers.

    Args:
        folder: the partition's.
        recent: its manifests, newest last.
        found: its segments by name.
        before: what was written, or written anew, since then stays (wall time, milliseconds).
        damaged: the SHA-256 of segments that cannot be read.
    """
    files = [{f"{folder}/{one.file}" for one in manifest.segments} for manifest in recent]
    if not recent or not all(one.whole for one in recent) or not files[-1] <= found.keys():
        return UnneededFiles()
    lost = [one for one in recent[-1].segments if one.sha256 in damaged]
    old = [
        name
        for name, one in found.items()
        if name not in files[-1]
        and max(one.modified_at, _written_anew(recent[-1], name)) < before
        and not any(_has_rows_of(name, segment) for segment in lost)
    ]
    named = set[str]().union(*files)
    return UnneededFiles(
        [one for one in old if one not in named], [one for one in old if one in named]
    )


def _written_anew(newest: Manifest, name: str) -> int:
    """Return when the rows of a file that is not named were written anew; 0 if they were not."""
    n, _ = _numbers(name)
    return max(
        (one.made_at for one in newest.segments if one.first.n <= n <= one.last.n), default=0
    )


def _has_rows_of(name: str, segment: Segment) -> bool:
    first, last = _numbers(name)
    return first <= segment.last.n and segment.first.n <= last


def _numbers(name: str) -> tuple[int, int]:
    """Return the numbers of a file's first and last row, as its name tells; 0 if it does not."""
    first, last, *_ = [*name.rpartition("/")[2].split("-"), "", ""]
    return (int(first), int(last)) if first.isdecimal() and last.isdecimal() else (0, 0)
