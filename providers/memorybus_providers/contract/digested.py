"""Rules of the digest: the same events in any order of keys give the same one, others another.

They are skipped for a provider without a digest.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from memorybus.events import Scope, SessionRef

from memorybus_providers.base import MemoryProvider
from memorybus_providers.contract.rules import Rules, require
from memorybus_providers.contract.samples import (
    HERE,
    OTHERS,
    SESSION,
    SampleStep,
    every_event,
    feed,
)

_OTHER_SESSION = SessionRef(id="another-session", root="another-session")
_LATER_NUMBER = 100
"""A number that is higher than all that `every_event` uses."""

Pairs = list[tuple[str, str]]


class DigestRules(Rules):
    """The digest represents the whole state, and nothing else (G8)."""

    def test_the_same_events_give_the_same_digest(self, tmp_path: Path) -> None:
        """Two instances with the same events, differently batched, have the same digest (G8)."""
        given = self._story(tmp_path, "the same")
        one = self._digest(tmp_path / "one", given)
        two = self._digest(tmp_path / "two", *([step] for step in given))
        require(one == two, f"the same events gave {_differing(one, two)}")

    def test_another_event_gives_another_digest(self, tmp_path: Path) -> None:
        """An event that is remembered changes the digest (G8)."""
        given = self._story(tmp_path, "the first")
        more = self._story(tmp_path, "one thing more", first=_LATER_NUMBER)[-1:]
        before = self._digest(tmp_path / "one", given)
        after = self._digest(tmp_path / "two", given, more)
        require(before != after, "one thing more was remembered, and the digest is the same")

    def test_the_order_of_unrelated_keys_does_not_matter(self, tmp_path: Path) -> None:
        """The digest is the same, whichever of two unrelated keys comes first (G8)."""
        here = self._story(tmp_path, "here")
        there = self._story(tmp_path, "there", OTHERS, _OTHER_SESSION, _LATER_NUMBER)
        one = self._digest(tmp_path / "one", here, there)
        two = self._digest(tmp_path / "two", there, here)
        require(one == two, f"another order of unrelated keys gave {_differing(one, two)}")

    def test_a_digest_is_in_order_and_can_be_had_in_parts(self, tmp_path: Path) -> None:
        """Keys ascend without repeats, and the digest after a key is the rest of the list (G8)."""
        here = self._story(tmp_path, "here")
        there = self._story(tmp_path, "there", OTHERS, _OTHER_SESSION, _LATER_NUMBER)
        with self._opened_digesting(tmp_path) as provider:
            feed(provider, here)
            feed(provider, there)
            whole = list(provider.digest() or ())
            keys = [key for key, _ in whole]
            require(keys == sorted(set(keys)), f"keys are not in order, or come twice: {keys}")
            for index, key in enumerate(keys):
                rest = list(provider.digest(key) or ())
                require(rest == whole[index + 1 :], f"after {key!r} comes {rest!r}")

    def _story(
        self,
        tmp_path: Path,
        text: str,
        scope: Scope = HERE,
        session: SessionRef = SESSION,
        first: int = 1,
    ) -> list[SampleStep]:
        """Return one event of each type, and one that every provider remembers."""
        provider = self.make_provider(tmp_path)
        events = (*every_event(text), self.remember(provider, text + " and kept"))
        return [SampleStep(n, event, scope, session) for n, event in enumerate(events, first)]

    def _digest(self, home: Path, *batches: Sequence[SampleStep]) -> Pairs:
        home.mkdir(exist_ok=True)
        with self._opened_digesting(home) as provider:
            for batch in batches:
                feed(provider, batch)
            return list(provider.digest() or ())

    @contextmanager
    def _opened_digesting(self, home: Path) -> Iterator[MemoryProvider]:
        """Open an instance, or skip the test if it gives no digest."""
        with self.opened(home) as provider:
            if provider.digest() is None:
                pytest.skip("gives no digest")
            yield provider


def _differing(one: Pairs, two: Pairs) -> list[str]:
    """Return the first keys that differ."""
    return sorted(key for key, _ in set(one) ^ set(two))[:3] or [key for key, _ in one][:3]
