"""Rules of bulk calls: several turns in one call are remembered as if each had its own call.

They are skipped for a provider that does not define `sync_turns`, or whose memories are not found
word for word.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from memorybus.events import SessionRef, TurnCompleted

from memorybus_providers.base import MemoryProvider, TurnCall
from memorybus_providers.contract.rules import Rules, require
from memorybus_providers.contract.samples import (
    OTHER_USER,
    SampleStep,
    call_hooks,
    hook_context,
)

_WORDS: Final = ("wolpertinger", "quince", "medlar")
_OTHER_SESSION = SessionRef(id="another-session", root="another-session")


class BulkRules(Rules):
    """A provider remembers the same with `sync_turns` as with `sync_turn` for each turn."""

    def test_turns_in_bulk_are_as_one_by_one(self, tmp_path: Path) -> None:
        """Turns of several sessions and people leave the same state in one call as in several."""
        with self._opened_bulky(tmp_path / "single") as provider:
            call_hooks(provider, _turns())
            single = self._state(provider)
        with self._opened_bulky(tmp_path / "bulk") as provider:
            _send(provider, _turns())
            bulk = self._state(provider)
        require(bulk == single, f"in one call turns left {bulk}, one by one {single}")

    def test_turns_that_come_again_in_bulk_change_nothing(self, tmp_path: Path) -> None:
        """Of a ``keyed`` provider a call repeated after a lost answer has no second effect (G4)."""
        with self._opened_bulky(tmp_path / "keyed") as provider:
            if provider.delivery != "keyed":
                pytest.skip(f"delivery is {provider.delivery!r}")
            _send(provider, _turns())
            before = self._state(provider)
            _send(provider, _turns())
            require(self._state(provider) == before, "a repeated call has a second effect")

    def _state(self, provider: MemoryProvider) -> object:
        digest = provider.digest()
        found = [self.state(provider, f"What of the {word}?") for word in _WORDS]
        return found, None if digest is None else list(digest)

    @contextmanager
    def _opened_bulky(self, home: Path) -> Iterator[MemoryProvider]:
        """Open an instance, or skip the test if it takes no turns in bulk."""
        home.mkdir()
        with self.opened_recalling(home) as provider:
            if type(provider).sync_turns is MemoryProvider.sync_turns:
                pytest.skip("takes one turn at a time")
            yield provider


def _turns() -> Sequence[SampleStep]:
    """Return turns of two sessions, of which one belongs to another person."""
    turns = [
        TurnCompleted(user=f"I saw a {word}.", assistant="Noted.", ordinal=n)
        for n, word in enumerate(_WORDS)
    ]
    first, second, third = turns
    return (
        SampleStep(1, first),
        SampleStep(2, second, OTHER_USER, _OTHER_SESSION),
        SampleStep(3, third),
    )


def _send(provider: MemoryProvider, given: Sequence[SampleStep]) -> None:
    turns = [
        TurnCall(step.event, hook_context(step))
        for step in given
        if isinstance(step.event, TurnCompleted)
    ]
    failed = provider.sync_turns(turns)
    require(isinstance(failed, Mapping), f"sync_turns returns a mapping, not {failed!r}")
    require(not failed, f"sync_turns says that good turns failed: {failed!r}")
