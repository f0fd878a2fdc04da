"""Comparing two states by their digests, a page at a time: which keys differ, the first named (G8).

Both instances go on while all keys are read: a key whose two digests agree at any moment is right.
A key that differs may only be a little farther in one of them, so it is read again in the pause,
when both stand at the same place.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from memorybus.jobs.inspect import InstanceInspector

TOGETHER = 50
"""Keys that are read again at once."""

NAMED = 20
"""Differing keys that are named; all are counted."""

Pair = tuple[str, str]
DifferenceKind = Literal["differs", "missing", "strange"]
DifferingKeys = dict[str, DifferenceKind]
"""Keys that are not the same in both, and how."""


class Difference(msgspec.Struct, frozen=True):
    """A key that is not the same in both: it differs, is missing in the second, or only there."""

    key: str
    how: DifferenceKind


class ComparisonResult(msgspec.Struct, frozen=True):
    """Two states compared.

    Attributes:
        keys: how many there are in either.
        differing: how many are not the same.
        named: the first of those.
        given: whether the provider gives a digest at all.
    """

    keys: int
    differing: int
    named: tuple[Difference, ...]
    given: bool = True

    @property
    def same(self) -> bool:
        """Whether both states are the same."""
        return self.given and not self.differing


NOT_COMPARED = ComparisonResult(0, 0, (), given=False)
"""The result for a provider that gives no digest."""


def merge_pairs(
    first: Iterator[Pair], second: Iterator[Pair]
) -> Iterator[tuple[str, DifferenceKind | None]]:
    """Yield every key of either, in order, and how it differs; pure, in flat memory."""
    one, two = next(first, None), next(second, None)
    while one is not None or two is not None:
        if two is None or (one is not None and one[0] < two[0]):
            yield (one or ("", ""))[0], "missing"
            one = next(first, None)
        elif one is None or two[0] < one[0]:
            yield two[0], "strange"
            two = next(second, None)
        else:
            yield one[0], None if one[1] == two[1] else "differs"
            one, two = next(first, None), next(second, None)


def compare_pairs(first: Iterator[Pair], second: Iterator[Pair]) -> tuple[int, DifferingKeys]:
    """Return how many keys there are, and those that differ; pure."""
    keys, differing = 0, dict[str, DifferenceKind]()
    for key, how in merge_pairs(first, second):
        keys += 1
        if how is not None:
            differing[key] = how
    return keys, differing


def summarize(keys: int, differing: DifferingKeys) -> ComparisonResult:
    """Return a comparison of which the first differing keys are named; pure."""
    first = sorted(differing.items())[:NAMED]
    return ComparisonResult(keys, len(differing), tuple(Difference(key, how) for key, how in first))


def differing_keys(first: Mapping[str, str], second: Mapping[str, str]) -> DifferingKeys:
    """Return which keys differ, and how; "" is the digest of a key that holds nothing; pure."""
    return {
        key: "differs" if one and second[key] else "missing" if one else "strange"
        for key, one in first.items()
        if one != second[key]
    }


class Comparison:
    """Compares two instances of a provider. Belongs to one thread.

    Every method raises `InspectionFailed` if one cannot be asked, and `LogUnavailable`.

    Args:
        inspector: asks them.
        provider: whose instances they are.
        first: the instance that the other is compared with.
        second: the other.
        before_page: called before every page.

    Attributes:
        provider: whose instances they are.
        first: the instance that the other is compared with.
        second: the other.
    """

    def __init__(
        self,
        inspector: InstanceInspector,
        provider: str,
        first: str,
        second: str,
        before_page: Callable[[], Any] = lambda: None,
    ) -> None:
        """Ask nothing yet."""
        self._inspector = inspector
        self.provider = provider
        self.first = first
        self.second = second
        self._before_page = before_page

    @property
    def has_digest(self) -> bool:
        """Whether the provider gives a digest at all."""
        return self._inspector.digest(self.provider, self.first).given

    def compare_now(self) -> ComparisonResult:
        """Compare the two as they are now."""
        return summarize(*self.compare_all()) if self.has_digest else NOT_COMPARED

    def compare_all(self) -> tuple[int, DifferingKeys]:
        """Return how many keys there are, and which differ now."""
        return compare_pairs(self._read_pairs(self.first), self._read_pairs(self.second))

    def compare_again(self, differing: DifferingKeys) -> DifferingKeys:
        """Read keys again that differed, while both instances stand at the same place.

        As soon as more differ than are named the rest counts as differing unread: the result is
        no, and the pause need not last longer for it.
        """
        found: DifferingKeys = {}
        keys = sorted(differing)
        for at in range(0, len(keys), TOGETHER):
            if len(found) > NAMED:
                return found | {key: differing[key] for key in keys[at:]}
            some = keys[at : at + TOGETHER]
            found |= differing_keys(
                self.digests_of(self.first, some), self.digests_of(self.second, some)
            )
        return found

    def digests_of(self, instance: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the digests of some keys of one of the two; "" of what holds nothing."""
        return dict(self._read_pairs(instance, keys))

    def _read_pairs(self, instance: str, keys: Sequence[str] = ()) -> Iterator[Pair]:
        """Yield an instance's digest, a page at a time."""
        after, more = "", True
        while more:
            self._before_page()
            page = self._inspector.digest(self.provider, instance, after, keys)
            yield from page.pairs
            more = page.more
            after = page.pairs[-1][0] if page.pairs else after


def describe_refusal(compared: ComparisonResult, provider: str, live: str, candidate: str) -> str:
    """Return what a person reads whose rebuild is refused since the states differ; pure."""
    words = {"differs": "differs", "missing": "not in it", "strange": "only in it"}
    named = "; ".join(f"{one.key} ({words[one.how]})" for one in compared.named)
    return (
        f"{candidate} differs from {live} in {compared.differing} of {compared.keys} keys: {named}."
        f" Nothing was swapped, {live} goes on. If it is the live state that is damaged, the same "
        f"command with --no-verify swaps; memorybus diff {live} {candidate} --query … shows what "
        f"both recall. {candidate} goes on beside it until memorybus rebuild --drop {provider} "
        f"--execute"
    )
