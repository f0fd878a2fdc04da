"""Comparing two states by their digests, a page at a time: which keys differ, the first named.

Both may go on meanwhile: a key whose two digests agree at any moment is as it should be. What
differs is read again, some times, since one of the two may only have been a little farther; what
differs then is compared while both stand at the same place.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from memorybus.jobs.inspect import InstanceInspector

ROUNDS = 10
"""So often keys that differ are read again before anything has to stand still."""

IN_VAIN = 3
"""Rounds in which not one key more agrees, after which more of them would not help either."""

TOGETHER = 50
"""Keys that are read again at once: of both, one right after the other."""

NAMED = 20
"""Differing keys that are named; all are counted."""

Pair = tuple[str, str]
How = Literal["differs", "missing", "strange"]
Differing = dict[str, How]
"""Keys that are not the same in both, and how."""


class Difference(msgspec.Struct, frozen=True):
    """A key that is not the same in both: it differs, is missing in the second, or only there."""

    key: str
    how: How


class Compared(msgspec.Struct, frozen=True):
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


NONE = Compared(0, 0, (), given=False)
"""Of a provider that gives no digest."""


def merged(first: Iterator[Pair], second: Iterator[Pair]) -> Iterator[tuple[str, How | None]]:
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


def compared(first: Iterator[Pair], second: Iterator[Pair]) -> tuple[int, Differing]:
    """Return how many keys there are, and those that differ; pure."""
    keys, differing = 0, dict[str, How]()
    for key, how in merged(first, second):
        keys += 1
        if how is not None:
            differing[key] = how
    return keys, differing


def told(keys: int, differing: Differing) -> Compared:
    """Return what is told of a comparison: the first keys that differ are named; pure."""
    first = sorted(differing.items())[:NAMED]
    return Compared(keys, len(differing), tuple(Difference(key, how) for key, how in first))


def between(first: Mapping[str, str], second: Mapping[str, str]) -> Differing:
    """Return how keys differ of which "" is the digest of those that hold nothing; pure."""
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
        provider: of which they are.
        first: the instance that is measured by.
        second: the other.
        keep: called before every page.

    Attributes:
        provider: of which they are.
        first: the instance that is measured by.
        second: the other.
    """

    def __init__(
        self,
        inspector: InstanceInspector,
        provider: str,
        first: str,
        second: str,
        keep: Callable[[], Any] = lambda: None,
    ) -> None:
        """Ask nothing yet."""
        self._inspector = inspector
        self.provider = provider
        self.first = first
        self.second = second
        self._keep = keep

    @property
    def given(self) -> bool:
        """Whether the provider gives a digest at all."""
        return self._inspector.digest(self.provider, self.first).given

    def now(self) -> Compared:
        """Compare the two as they are now."""
        return told(*self.whole()) if self.given else NONE

    def whole(self) -> tuple[int, Differing]:
        """Return how many keys there are, and those that differ now."""
        return compared(self._pairs(self.first), self._pairs(self.second))

    def rounds(self, differing: Differing, pause: Callable[[], Any]) -> Differing:
        """Read keys again that differ, until they agree or have had their chances.

        Args:
            differing: they.
            pause: called before each round.
        """
        vain = 0
        for _ in range(ROUNDS):
            if not differing or vain == IN_VAIN:
                break
            pause()
            before, differing = len(differing), self._again(sorted(differing))
            vain = vain + 1 if len(differing) == before else 0
        return differing

    def _again(self, keys: Sequence[str]) -> Differing:
        found: Differing = {}
        for at in range(0, len(keys), TOGETHER):
            some = keys[at : at + TOGETHER]
            found |= between(self.picked(self.first, some), self.picked(self.second, some))
        return found

    def picked(self, instance: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the digests of some keys of one of the two; "" of what holds nothing."""
        return dict(self._pairs(instance, keys))

    def _pairs(self, instance: str, keys: Sequence[str] = ()) -> Iterator[Pair]:
        """Yield an instance's digest, a page at a time."""
        after, more = "", True
        while more:
            self._keep()
            page = self._inspector.digest(self.provider, instance, after, keys)
            yield from page.pairs
            more = page.more
            after = page.pairs[-1][0] if page.pairs else after
