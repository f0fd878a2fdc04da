"""Reading a manifest that may be damaged: what is intact is used, what is not is named.

Three steps: lines whose own sum holds; the chain of them, from the last line's head backwards and
from the beginning forwards, never two for the same place; words for all that is left over.
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
    intact,
)
from memorybus.log.entry import parse_entry_id

_EDITED = "is not as it was written (edited, or damaged on the disk)"
_CUT = "the last line is missing: the manifest was cut off"

_FILE = re.compile(r"segments/[0-9A-Za-z-]+\.parquet")
_ENTRY = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")


class _Found(msgspec.Struct):
    """The lines of one file, sorted out.

    Attributes:
        name: the file.
        of: whose it should be.
        lines: the segments whose own sums hold, by number of line.
        end: the last line.
        broken: lines that do not hold.
        damage: what was found so far.
        older: lines of earlier manifests: one that the chain misses is taken from there.
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
    """Return what a manifest's bytes say, as far as it can be believed.

    Args:
        data: the file.
        of: whose it has to be.
        version: the number its name bears.
        name: of the file, for messages.
        older: the segments of earlier manifests, which may heal this one.
    """
    found = _sorted_out(data, of, name)
    found.older = tuple(older)
    _check_end(found, version, data)
    chosen = _chained(found)
    _explain(found, chosen)
    head = found.end.head if found.end else ""
    return Manifest(version=version, segments=tuple(chosen), head=head, damage=tuple(found.damage))


def _sorted_out(data: bytes, of: LogPartition, name: str) -> _Found:
    found = _Found(name, of, {}, None, set(), [])
    for number, line in enumerate(data.splitlines(), 1):
        value = _value(line) if intact(line) else None
        if value is None:
            found.broken.add(number)
            found.note(_EDITED, number)
        elif value.of != of:
            found.note(f"belongs to {_place(value.of)}, not here", number)
        elif isinstance(value, ManifestEnd):
            found.end = value
        else:
            found.lines[number] = value
    return found


def _value(line: bytes) -> Segment | ManifestEnd | None:
    kind: type[Segment | ManifestEnd] = ManifestEnd if b'"head":' in line else Segment
    try:
        found = msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, ManifestEnd) or _is_ours(found) else None


def _is_ours(segment: Segment) -> bool:
    """Say whether file and places are as we write them: a stranger's sums may hold, too."""
    entries = (segment.first.entry, segment.last.entry)
    return bool(_FILE.fullmatch(segment.file)) and all(map(_ENTRY.fullmatch, entries))


def _place(of: LogPartition) -> str:
    return f"partition {of.partition} of log {of.log} ({of.namespace})"


def _check_end(found: _Found, version: int, data: bytes) -> None:
    end, lines = found.end, len(data.splitlines())
    if end is None:
        if lines not in found.broken:
            found.note(_CUT)
    elif end.version != version:
        found.note(f"is version {end.version} under another number")
    elif end.count + 1 != lines:
        found.note(f"has {lines - 1} segments, and its last line counts {end.count}")
    elif not data.endswith(b"\n"):
        found.note("does not end with a line's end")


def _chained(found: _Found) -> list[Segment]:
    """Return the segments to believe, in order, no two of them for the same place."""
    lines = list(found.lines.values())
    if _is_straight(found, lines):
        return lines
    chosen: dict[str, Segment] = {}
    heads = [*([found.end.head] if found.end else []), *(line.previous for line in lines)]
    known = by_sum([*found.older, *lines])
    chain = [segment for head in heads for segment in _backwards(head, known)]
    for segment in (*chain, *_forwards(found.of, lines), *lines):
        if all(_apart(segment, other) for other in chosen.values()):
            chosen.setdefault(segment.sum, segment)
    return sorted(chosen.values(), key=lambda segment: parse_entry_id(segment.first.entry))


def _is_straight(found: _Found, lines: Sequence[Segment]) -> bool:
    """Say whether the chain goes from the beginning through all lines to the end."""
    sums = [found.of.seed, *(line.sum for line in lines)]
    chained = [line.previous for line in lines] == sums[:-1]
    return chained and found.end is not None and found.end.head == sums[-1] and not found.broken


def _backwards(at: str, known: Mapping[str, Segment]) -> Iterable[Segment]:
    while at in known:
        yield known[at]
        at = known[at].previous


def _forwards(of: LogPartition, lines: Sequence[Segment]) -> Iterable[Segment]:
    known, at = {segment.previous: segment for segment in reversed(lines)}, of.seed
    while at in known:
        yield known[at]
        at = known[at].sum


def _apart(one: Segment, other: Segment) -> bool:
    first, last = parse_entry_id(one.first.entry), parse_entry_id(one.last.entry)
    return last < parse_entry_id(other.first.entry) or first > parse_entry_id(other.last.entry)


def _explain(found: _Found, chosen: Sequence[Segment]) -> None:
    """Name the lines that are not where the chain wants them, and those it misses."""
    believed, seen = by_sum(chosen), set[str]()
    for number, segment in found.lines.items():
        if segment.sum in seen:
            found.note("stands there twice", number)
        elif segment.sum not in believed:
            found.note("is not of this manifest: its place is another's", number)
        elif (wrong := _out_of_place(found, number, segment)) is not None:
            found.note(wrong, number)
        seen.add(segment.sum)
    _explain_head(found, believed)


def _out_of_place(found: _Found, number: int, segment: Segment) -> str | None:
    if number - 1 in found.broken:
        return None
    before = found.lines[number - 1].sum if number - 1 in found.lines else found.of.seed
    if segment.previous == before:
        return None
    if segment.previous == found.of.seed or segment.previous in by_sum(list(found.lines.values())):
        return "stands out of order"
    return "the line before it is missing"


def _explain_head(found: _Found, believed: Iterable[str]) -> None:
    end = found.end
    lost = end is not None and end.head not in {*believed, found.of.seed}
    if lost and not found.broken:
        found.note("the segment that its last line names is missing")
