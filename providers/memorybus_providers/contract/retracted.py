"""Rules of retraction: a retracted turn is gone as if never said, and nothing else is gone.

They are skipped for a provider that does not declare `retracts`, that remembers no turns, or that
does not recall word for word.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from memorybus.events import Scope, SessionRef, SessionSwitched, TurnCompleted

from memorybus_providers.base import MemoryProvider
from memorybus_providers.contract.rules import Rules, require
from memorybus_providers.contract.samples import (
    HERE,
    OTHERS,
    SESSION,
    SampleStep,
    feed,
    handles_event,
    recall_context,
)

_KEPT_WORD, _UNDONE_WORD = "quince", "wolpertinger"
_OTHER_SESSION = SessionRef(id="another-session", root="another-session")
_REWIND_NUMBER = 50
"""The number of the rewind, higher than those of the turns."""


class RetractRules(Rules):
    """Nobody recalls what an undone turn said, in the live state or in a rebuild."""

    def test_what_was_retracted_is_not_recalled(self, tmp_path: Path) -> None:
        """A retracted turn is not recalled any more, even after a restart; other turns are."""
        kept, undone = _turn(1, _KEPT_WORD), _turn(2, _UNDONE_WORD)
        with self._opened_retracting(tmp_path) as provider:
            feed(provider, [kept, undone])
            require(
                self._remembers(provider, _UNDONE_WORD),
                "a turn is not recalled before it is retracted",
            )
            feed(provider, [_rewind(undone)])
        with self._opened_retracting(tmp_path) as provider:
            require(
                not self._remembers(provider, _UNDONE_WORD), "a retracted turn is still recalled"
            )
            require(self._remembers(provider, _KEPT_WORD), "with a retracted turn another one went")

    def test_a_retracted_turn_leaves_nothing_in_the_state(self, tmp_path: Path) -> None:
        """The state is as if the turn had never been applied, however events are batched (G8)."""
        kept, undone = _turn(1, _KEPT_WORD), _turn(2, _UNDONE_WORD)
        last = _turn(_REWIND_NUMBER + 1, "medlar")
        without = self._after(tmp_path / "without", [kept], [_rewind(undone)], [last])
        batched = self._after(tmp_path / "batched", [kept, undone, _rewind(undone), last])
        single = self._after(tmp_path / "single", [kept], [undone], [_rewind(undone)], [last])
        require(batched == without, f"in one batch a retracted turn left {batched} not {without}")
        require(single == without, f"a retracted turn left {single}, not {without}")

    def test_only_what_is_the_rewinds_own_is_retracted(self, tmp_path: Path) -> None:
        """A rewind retracts no events of another owner or lineage, and ignores unknown ids."""
        theirs = msgspec.structs.replace(_turn(1, _KEPT_WORD), scope=OTHERS)
        another = msgspec.structs.replace(_turn(2, _UNDONE_WORD), session=_OTHER_SESSION)
        with self._opened_retracting(tmp_path) as provider:
            feed(provider, [theirs])
            feed(provider, [another])
            feed(provider, [_rewind(theirs, another, _turn(3, "never said"))])
            require(
                self._remembers(provider, _KEPT_WORD, OTHERS),
                "a rewind retracted another owner's turn",
            )
            require(
                self._remembers(provider, _UNDONE_WORD), "a rewind retracted another lineage's turn"
            )

    def _remembers(self, provider: MemoryProvider, word: str, scope: Scope = HERE) -> bool:
        found = provider.prefetch(f"What of the {word}?", recall_context(scope, self.deadline))
        return any(word in one.text for one in found)

    def _after(self, home: Path, *batches: Sequence[SampleStep]) -> object:
        """Return the state of a fresh instance after these events."""
        home.mkdir()
        with self._opened_retracting(home) as provider:
            for batch in batches:
                feed(provider, batch)
            digest = provider.digest()
            state = [self.state(provider, word) for word in (_KEPT_WORD, _UNDONE_WORD, "medlar")]
            return state, None if digest is None else list(digest)

    @contextmanager
    def _opened_retracting(self, home: Path) -> Iterator[MemoryProvider]:
        """Open an instance, or skip the test if it retracts nothing that could be recalled."""
        with self.opened_recalling(home) as provider:
            if not (provider.capabilities.retracts and handles_event(provider, TurnCompleted)):
                pytest.skip("retracts no turns")
            yield provider


def _turn(n: int, word: str) -> SampleStep:
    return SampleStep(n, TurnCompleted(user=f"I saw a {word}.", assistant="Noted.", ordinal=n))


def _rewind(*undone: SampleStep) -> SampleStep:
    ids = tuple(step.event_id for step in undone)
    event = SessionSwitched(new_id=SESSION.id, reason="rewind", rewound=True, retracted=ids)
    return SampleStep(_REWIND_NUMBER, event)
