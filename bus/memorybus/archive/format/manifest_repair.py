"""Reads a manifest that may be damaged: uses what is intact, and names what is not.

There are three steps. First, keep the lines whose own sum is right. Second, follow the chain of
sums, backwards from the last line's head and forwards from the beginning, and never choose two
segments for the same place. Third, describe every line that is left over.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from memorybus.archive.format.manifest import (
    Damage,
    LogPartition,
    Manifest,
    ManifestEnd,
    Segment,
    by_sum,
    is_intact,
)
from memorybus.log.entry import parse_entry_id
from memorybus.msgspec_types import prepared

_EDITED = "is not as it was written (edited, or damaged on the disk)"
_CUT = "the last line is missing: the manifest was cut off"

_FILE = re.compile(r"segments/[0-9A-Za-z-]+\.parquet")
_ENTRY = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")


class _ReadLines(msgspec.Struct):
    """The lines of one file, sorted by kind.

    Attributes:
        name: the file.
        of: the partition that it should belong to.
        lines: the segments whose own sums are right, by line number.
        end: the last line.
        broken: the numbers of lines that are not intact.
        damage: the damage found so far.
        older: segments of earlier manifests; they replace lines that the chain misses.
    """

    name: str
    of: LogPartition
    lines: dict[int, Segment]
    end: ManifestEnd | None
    broken: set[int]
    damage: list[Damage]
    older: tuple[Segment, ...] = ()

    def note(self, why: str, line: int = 0) -> None:
        self.damage.append(Damage(partition=self.of.partition, file=self.name, why=why, line=line))


def parse(
    data: bytes, of: LogPartition, version: int, name: str, older: Sequence[Segment] = ()
) -> Manifest:
    """Return the content of a manifest, as far as its sums prove it.

    Args:
        data: the bytes of the file.
        of: the partition that it has to belong to.
        version: the number in its name.
        name: the file's name, for messages.
        older: the segments of earlier manifests, which may replace damaged lines.
    """
    found = _read_lines(data, of, name)
    found.older = tuple(older)
    _check_end(found, version, data)
    chosen = _choose_segments(found)
    _explain(found, chosen)
    head = found.end.head if found.end else ""
    return Manifest(version=version, segments=tuple(chosen), head=head, damage=tuple(found.damage))


def _read_lines(data: bytes, of: LogPartition, name: str) -> _ReadLines:
    found = _ReadLines(name, of, {}, None, set(), [])
    for number, line in enumerate(data.splitlines(), 1):
        value = _decode_line(line) if is_intact(line) else None
        if value is None:
            found.broken.add(number)
            found.note(_EDITED, number)
        elif value.of != of:
            found.note(f"belongs to {_describe_partition(value.of)}, not here", number)
        elif isinstance(value, ManifestEnd):
            found.end = value
        else:
            found.lines[number] = value
    return found


def _decode_line(line: bytes) -> Segment | ManifestEnd | None:
    kind: type[Segment | ManifestEnd] = ManifestEnd if b'"head":' in line else Segment
    try:
        found = msgspec.json.decode(line, type=prepared(kind))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, ManifestEnd) or _is_ours(found) else None


def _is_ours(segment: Segment) -> bool:
    """Say whether file name and places have our form: another program's sums may be right."""
    entries = (segment.first.entry, segment.last.entry)
    return bool(_FILE.fullmatch(segment.file)) and all(map(_ENTRY.fullmatch, entries))


def _describe_partition(of: LogPartition) -> str:
    return f"partition {of.partition} of log {of.log} ({of.namespace})"


def _check_end(found: _ReadLines, version: int, data: bytes) -> None:
    end, lines = found.end, len(data.splitlines())
    if end is None:
        if lines not in found.broken:
            found.note(_CUT)
    elif end.version != version:
        found.note(f"says that it is version {end.version}, but its name has another number")
    elif end.count + 1 != lines:
        found.note(f"has {lines - 1} segments, but its last line counts {end.count}")
    elif not data.endswith(b"\n"):
        found.note("does not end with a line break")


def _choose_segments(found: _ReadLines) -> list[Segment]:
    """Return the segments to use, in order, no two of them for the same place."""
    lines = list(found.lines.values())
    if _is_straight(found, lines):
        return lines
    chosen: dict[str, Segment] = {}
    heads = [*([found.end.head] if found.end else []), *(line.previous for line in lines)]
    known = by_sum([*found.older, *lines])
    chain = [segment for head in heads for segment in _walk_backward(head, known)]
    for segment in (*chain, *_walk_forward(found.of, lines), *lines):
        if all(_are_disjoint(segment, other) for other in chosen.values()):
            chosen.setdefault(segment.sum, segment)
    return sorted(chosen.values(), key=lambda segment: parse_entry_id(segment.first.entry))


def _is_straight(found: _ReadLines, lines: Sequence[Segment]) -> bool:
    """Say whether the chain of sums runs from the beginning through all lines to the end."""
    sums = [found.of.seed, *(line.sum for line in lines)]
    chained = [line.previous for line in lines] == sums[:-1]
    return chained and found.end is not None and found.end.head == sums[-1] and not found.broken


def _walk_backward(at: str, known: Mapping[str, Segment]) -> Iterable[Segment]:
    while at in known:
        yield known[at]
        at = known[at].previous


def _walk_forward(of: LogPartition, lines: Sequence[Segment]) -> Iterable[Segment]:
    known, at = {segment.previous: segment for segment in reversed(lines)}, of.seed
    while at in known:
        yield known[at]
        at = known[at].sum


def _are_disjoint(one: Segment, other: Segment) -> bool:
    first, last = parse_entry_id(one.first.entry), parse_entry_id(one.last.entry)
    return last < parse_entry_id(other.first.entry) or first > parse_entry_id(other.last.entry)


def _explain(found: _ReadLines, chosen: Sequence[Segment]) -> None:
    """Note the lines that stand in the wrong place, and the lines that are missing."""
    believed, seen = by_sum(chosen), set[str]()
    for number, segment in found.lines.items():
        if segment.sum in seen:
            found.note("stands there twice", number)
        elif segment.sum not in believed:
            found.note("is not of this manifest: its place is another's", number)
        elif (wrong := _describe_misplaced(found, number, segment)) is not None:
            found.note(wrong, number)
        seen.add(segment.sum)
    _explain_head(found, believed)


def _describe_misplaced(found: _ReadLines, number: int, segment: Segment) -> str | None:
    if number - 1 in found.broken:
        return None
    before = found.lines[number - 1].sum if number - 1 in found.lines else found.of.seed
    if segment.previous == before:
        return None
    if segment.previous == found.of.seed or segment.previous in by_sum(list(found.lines.values())):
        return "stands out of order"
    return "the line before it is missing"


def _explain_head(found: _ReadLines, believed: Iterable[str]) -> None:
    end = found.end
    lost = end is not None and end.head not in {*believed, found.of.seed}
    if lost and not found.broken:
        found.note("the segment that its last line names is missing")
