"""The manifest: a chain of lines in which every kind of damage has a name."""

import random
from collections.abc import Callable

import msgspec
import pytest
from helpers.archive.archives import LOG
from memorybus.archive.format.manifest import (
    LogPartition,
    Manifest,
    Segment,
    parse,
    render,
)
from memorybus.log.entry import Place

OF = LogPartition("t", LOG, 7)
COUNT = 6


def segment(number: int, of: LogPartition = OF) -> Segment:
    """Return the segment of ten rows of a number, from 0."""
    first, last = number * 10 + 1, number * 10 + 10
    return Segment(
        of=of,
        file=f"segments/{number}.parquet",
        first=Place(f"{first}-0", first),
        last=Place(f"{last}-0", last),
        count=10,
        kept=10,
        types={"TurnCompleted": 10},
        since=first,
        until=last,
        bytes=100,
        raw=1_000,
        sha256=f"{number:064x}",
        made_at=1,
    )


def written(count: int = COUNT, of: LogPartition = OF, version: int = 3) -> bytes:
    """Return a manifest's bytes."""
    return render(of, version, [segment(n, of) for n in range(count)], 1)


def read(data: bytes, version: int = 3) -> Manifest:
    """Return what a reader believes."""
    return parse(data, OF, version, "m")


def numbers(manifest: Manifest) -> list[int]:
    """Return the segments that are believed."""
    return [int(one.sha256, 16) for one in manifest.segments]


@pytest.mark.parametrize("count", [0, 1, COUNT])
def test_a_manifest_says_what_was_sealed(count):
    """G7: what was written is read back whole: segments, order, version, end."""
    found = read(written(count))
    assert numbers(found) == list(range(count))
    assert found.damage is None
    assert found.version == 3
    assert found.end == (Place(f"{count * 10}-0", count * 10) if count else None)


def test_a_manifest_can_be_written_anew():
    """G7: segments that were read are chained the same way when one is added."""
    first = read(written(5))
    assert render(OF, 3, [*first.segments, segment(5)], 1) == written(6)


def lines(change: Callable[[list[bytes]], list[bytes]]) -> bytes:
    """Return a manifest whose lines were changed."""
    return b"".join(change(written().splitlines(keepends=True)))


def swapped(all_lines: list[bytes]) -> list[bytes]:
    """Let two lines change places."""
    return [*all_lines[:2], all_lines[3], all_lines[2], *all_lines[4:]]


FOREIGN = written(of=LogPartition("t", LOG, 8)).splitlines(keepends=True)
CASES = {
    "edited": (
        lambda x: [*x[:2], x[2].replace(b'"count":10', b'"count":11'), *x[3:]],
        2,
        "edited",
    ),
    "missing": (lambda x: [*x[:2], *x[3:]], 2, "a line is missing"),
    "first missing": (lambda x: x[1:], 0, "a line is missing"),
    "last missing": (lambda x: [*x[:5], x[6]], 5, "a line is missing"),
    "twice": (lambda x: [*x[:3], x[2], *x[3:]], 3, "repeated"),
    "reordered": (swapped, 2, "moved"),
    "foreign": (lambda x: [*x[:2], FOREIGN[2], *x[3:]], 2, "belongs to partition 8"),
    "foreign too": (lambda x: [*x[:2], FOREIGN[2], *x[2:]], 2, "belongs to partition 8"),
    "no end": (lambda x: x[:6], 6, "was cut off"),
    "cut": (lambda x: [*x[:4], x[4][:50]], 4, "edited"),
    "no line break": (lambda x: [*x[:6], x[6][:-1]], 6, "edited"),
    "two ends": (lambda x: [*x, x[6]], 6, "others follow"),
    "empty": (lambda _: [], 0, "was cut off"),
}


@pytest.mark.parametrize("name", CASES)
def test_damage_is_named_and_nothing_behind_it_is_believed(name):
    """G7: of a changed manifest the lines before the first damage count, and that is named."""
    change, believed, why = CASES[name]
    found = read(lines(change))
    assert why in str(found.damage)
    assert found.segments == read(written()).segments[:believed]


@pytest.mark.parametrize(
    "foreign",
    [
        {"file": "../../../etc/passwd"},
        {"file": "/etc/passwd"},
        {"file": "segments/../2.parquet"},
        {"file": "segments/a/2.parquet"},
        {"file": "segments/2"},
        {"first": Place("abc", 21)},
        {"first": Place("21", 21)},
        {"last": Place("³-0", 30)},
        {"last": Place("9" * 5_000 + "-0", 30)},
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_line_that_we_never_write_is_not_believed(foreign):
    """G7: a stranger's line whose sum holds names no file outside, and no place that is none."""
    line = msgspec.structs.replace(segment(2), **foreign)
    others = [segment(n) for n in range(COUNT)]
    found = read(render(OF, 3, [*others[:2], line, *others[3:]], 1))
    assert numbers(found) == [0, 1]
    assert found.damage is not None
    assert found.damage.line == 3


def test_another_version_under_this_number_is_named():
    """G7: an old manifest put back under a new number does not pass."""
    assert "version 3" in str(read(written(), version=4).damage)


@pytest.mark.slow(reason="every bit of a manifest")
def test_every_flipped_bit_is_seen():
    """G7: wherever one bit of a manifest is wrong, it is named, and no wrong line is believed."""
    data, rng = written(), random.Random(5)
    sound = read(data).segments
    for place in range(len(data)):
        wrong = bytearray(data)
        wrong[place] ^= 1 << rng.randrange(8)
        found = read(bytes(wrong))
        assert found.damage, place
        assert found.segments == sound[: len(found.segments)], place
