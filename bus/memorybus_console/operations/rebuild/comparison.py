"""Compares two states by their digests, a page at a time, and names the first that differ (G8).

All keys are read while both instances continue. A key whose digests agree then is right. A key
whose digests differ may only be newer in one of the two, so it is read again in the pause, when
both instances stand at the same position.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, repeat
from typing import Any, Literal

import msgspec
from memorybus.jobs.inspect import InstanceInspector, ReadDigest, TryRecall
from memorybus.recall.model import RecalledItem, RecallRequest

KEYS_PER_REQUEST = 50

MAX_NAMED = 20  # how many differing keys are named; all are counted

Pair = tuple[str, str]
DifferenceKind = Literal["differs", "missing", "strange"]
DifferingKeys = dict[str, DifferenceKind]
"""Keys that differ between two states, and how: see `Difference`."""


class Difference(msgspec.Struct, frozen=True):
    """A key that differs between two states.

    Its digests differ (``differs``), the second state lacks it (``missing``), or only the second
    state has it (``strange``).
    """

    key: str
    how: DifferenceKind


class ComparisonResult(msgspec.Struct, frozen=True):
    """The comparison of two states.

    Attributes:
        keys: how many keys the two states have together.
        named: the first of the differing keys.
    """

    keys: int
    differing: int
    named: tuple[Difference, ...]
    given: bool = True

    @property
    def same(self) -> bool:
        return self.given and not self.differing


NOT_COMPARED = ComparisonResult(0, 0, (), given=False)
"""The result for a provider that gives no digests."""


def merge_pairs(
    first: Iterator[Pair], second: Iterator[Pair]
) -> Iterator[tuple[str, DifferenceKind | None]]:
    """Yield the keys of both in order, and how each differs (None if it does not); pure, lazy."""
    tagged = ((zip(pairs, repeat(side))) for side, pairs in enumerate((first, second)))
    both = heapq.merge(*tagged, key=lambda item: item[0][0])
    for key, items in groupby(both, key=lambda item: item[0][0]):
        digests = {side: digest for (_, digest), side in items}
        if len(digests) == 1:
            yield key, "missing" if 0 in digests else "strange"
        else:
            yield key, None if digests[0] == digests[1] else "differs"


def compare_pairs(first: Iterator[Pair], second: Iterator[Pair]) -> tuple[int, DifferingKeys]:
    """Return how many keys there are, and which differ; pure."""
    keys, differing = 0, dict[str, DifferenceKind]()
    for key, how in merge_pairs(first, second):
        keys += 1
        if how is not None:
            differing[key] = how
    return keys, differing


def summarize(keys: int, differing: DifferingKeys) -> ComparisonResult:
    """Return the result that names the first of the differing keys; pure."""
    first = sorted(differing.items())[:MAX_NAMED]
    return ComparisonResult(keys, len(differing), tuple(Difference(key, how) for key, how in first))


def differing_keys(first: Mapping[str, str], second: Mapping[str, str]) -> DifferingKeys:
    """Return which keys differ, and how; "" is the digest of a key that a state lacks; pure."""
    return {
        key: "differs" if digest and second[key] else "missing" if digest else "strange"
        for key, digest in first.items()
        if digest != second[key]
    }


@dataclass
class Comparison:
    """Compares two instances of a provider. Belongs to one thread.

    Every method raises `InspectionFailed` if an instance cannot be asked, and `LogUnavailable`.
    """

    inspector: InstanceInspector
    provider: str
    first: str
    second: str
    before_page: Callable[[], Any] = lambda: None

    @property
    def has_digest(self) -> bool:
        return self.inspector.ask(self.provider, self.first, ReadDigest()).given

    def compare_now(self) -> ComparisonResult:
        return summarize(*self.compare_all()) if self.has_digest else NOT_COMPARED

    def compare_all(self) -> tuple[int, DifferingKeys]:
        """Read all keys of both; return how many there are, and which differ."""
        return compare_pairs(self._read_pairs(self.first), self._read_pairs(self.second))

    def compare_again(self, differing: DifferingKeys) -> DifferingKeys:
        """Read differing keys again, while both instances stand at the same position.

        Once more keys differ than are named, the rest counts as differing without being read: the
        states differ anyway, and the pause should not last longer.
        """
        still: DifferingKeys = {}
        keys = sorted(differing)
        for at in range(0, len(keys), KEYS_PER_REQUEST):
            if len(still) > MAX_NAMED:
                return still | {key: differing[key] for key in keys[at:]}
            some = keys[at : at + KEYS_PER_REQUEST]
            still |= differing_keys(
                self.digests_of(self.first, some), self.digests_of(self.second, some)
            )
        return still

    def digests_of(self, instance: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the digests of some keys in one of the two; "" for a key that it lacks."""
        return dict(self._read_pairs(instance, keys))

    def _read_pairs(self, instance: str, keys: Sequence[str] = ()) -> Iterator[Pair]:
        """Yield an instance's digest, a page at a time."""
        after, more = "", True
        while more:
            self.before_page()
            page = self.inspector.ask(self.provider, instance, ReadDigest(after, tuple(keys)))
            yield from page.pairs
            more = page.more
            after = page.pairs[-1][0] if page.pairs else after


def describe_refusal(compared: ComparisonResult, provider: str, live: str, candidate: str) -> str:
    """Return the message for a rebuild that is refused because the states differ; pure."""
    words = {"differs": "differs", "missing": "not in it", "strange": "only in it"}
    named = "; ".join(
        f"{difference.key} ({words[difference.how]})" for difference in compared.named
    )
    return (
        f"{candidate} differs from {live} in {compared.differing} of {compared.keys} keys: {named}."
        f" Nothing was swapped, {live} continues. If it is the live state that is damaged, the "
        f"same command with --no-verify swaps; memorybus diff {live} {candidate} --query … shows "
        f"what both recall. {candidate} continues beside it until memorybus rebuild --drop "
        f"{provider} --yes"
    )


class RecallSide(msgspec.Struct, frozen=True):
    """What one instance recalls."""

    instance: str
    items: tuple[RecalledItem, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts alone, best first."""
        return tuple(item.text for item in self.items)


class RecallDifference(msgspec.Struct, frozen=True):
    """What two instances recall for one query."""

    query: str
    same: bool
    first: RecallSide
    second: RecallSide


def compare_recalls(
    inspector: InstanceInspector,
    instances: tuple[tuple[str, str], tuple[str, str]],
    wants: Sequence[RecallRequest],
) -> list[RecallDifference]:
    """Ask both instances every query, and return what they recall.

    Raises:
        InspectionFailed: an instance cannot be asked.
    """
    differences = []
    for want in wants:
        first, second = (
            RecallSide(name, inspector.ask(of, name, TryRecall(want)).items)
            for of, name in instances
        )
        differences.append(RecallDifference(want.query, first.texts == second.texts, first, second))
    return differences
