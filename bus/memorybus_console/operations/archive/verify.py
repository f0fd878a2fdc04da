"""``memorybus archive verify``: checks every manifest and every byte of the segments."""

from collections.abc import Callable, Sequence
from contextlib import closing

import msgspec
from memorybus.archive.archive import Archive
from memorybus.archive.location import views_of
from memorybus.archive.verification import FileReport, report_missing_manifest
from memorybus.config.settings import Settings

from memorybus_console.operations.archive.opening import open_archive


class ArchiveVerified(msgspec.Struct, frozen=True):
    """The files of the archive: how many are sound, which are damaged, other findings.

    Attributes:
        ok: whether nothing is damaged.
        sound: how many files are sound.
        damaged: the damaged ones.
        noted: files that no manifest names, and numbers that were lost before they were sealed.
        where: where the archive is.
    """

    ok: bool
    sound: int
    damaged: list[FileReport]
    noted: list[FileReport]
    where: str


def verify_archive(settings: Settings, step: Callable[[], None]) -> ArchiveVerified:
    """Check every file; report also what Redis counts as sealed although no file contains it.

    Args:
        step: called for each file.

    Raises:
        ArchiveUnavailable: the log does not exist yet, or its archive cannot be reached.
        LogUnavailable: Redis does not answer.
    """
    with closing(open_archive(settings)) as archive:
        return _sum_up(_check_files(settings, archive, step), archive.where)


def _check_files(
    settings: Settings, archive: Archive, step: Callable[[], None]
) -> list[FileReport]:
    views = views_of(settings)  # read first: more may be sealed while the files are checked
    found = []
    for report in archive.verify(range(settings.partitions)):
        found.append(report)
        step()
    damaged = {one.partition for one in found if one.found == "damaged" and not one.events}
    for partition, view in views.items():
        if partition in damaged:  # a damaged manifest is reported already
            continue
        end = archive.end(partition)
        lost = report_missing_manifest(partition, view, end.n if end else 0)
        if lost is not None:
            found.append(lost)
    return found


def _sum_up(found: Sequence[FileReport], where: str) -> ArchiveVerified:
    damaged = [one for one in found if one.found == "damaged"]
    return ArchiveVerified(
        ok=not damaged,
        sound=sum(one.found == "sound" for one in found),
        damaged=damaged,
        noted=[one for one in found if one.found in ("gap", "unlisted")],
        where=where,
    )
