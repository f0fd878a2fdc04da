"""Rules of delivery: an effect happens once, and only the current owner causes it (G4, G5)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from memorybus.errors import LeaseLost
from memorybus.events import SessionRef, TurnCompleted

from memorybus_providers.base import (
    Fence,
    MemoryProvider,
    Progress,
    TransactionalProvider,
    TurnCall,
)
from memorybus_providers.contract.rules import Rules, require
from memorybus_providers.contract.samples import (
    LANE,
    OTHER_USER,
    SampleStep,
    call_hooks,
    every_event,
    feed,
    hook_context,
    progress_at,
    steps,
)

_WORD = "quokka"


class _Abandoned(Exception):
    """Raised inside a transaction to roll it back."""


class OnceRules(Rules):
    """Replays change nothing, stale owners change nothing, a rollback leaves nothing."""

    def test_the_same_events_again_change_nothing(self, tmp_path: Path) -> None:
        """A lane that begins again applies nothing twice, even after a restart (G4)."""
        samples = steps(*every_event(f"{_WORD} again"))
        with self.opened(tmp_path) as provider:
            if provider.delivery not in {"transactional", "keyed"}:
                pytest.skip(f"not claimed: delivery is {provider.delivery!r}")
            feed(provider, samples)
            before = self.state(provider, _WORD)
            feed(provider, samples)
            require(self.state(provider, _WORD) == before, "the same events changed the state")
        with self.opened(tmp_path) as provider:
            feed(provider, samples)
            require(self.state(provider, _WORD) == before, "after a restart they changed it")

    def test_a_lookup_knows_what_the_backend_holds(self, tmp_path: Path) -> None:
        """A ``lookup`` provider distinguishes events that it stored from others (G4)."""
        with self.opened(tmp_path) as provider:
            if provider.delivery != "lookup":
                pytest.skip(f"not claimed: delivery is {provider.delivery!r}")
            overridden = type(provider).knows is not MemoryProvider.knows
            require(overridden, "a lookup provider must define knows")
            sent, unsent = steps(*(self.remember(provider, f"{_WORD} {n}") for n in range(2)))
            feed(provider, [sent])
            _require_knows(provider, sent, unsent)
        with self.opened(tmp_path) as provider:
            _require_knows(provider, sent, unsent)

    def test_the_ledger_knows_what_was_applied(self, tmp_path: Path) -> None:
        """Later transactions know exactly the ids that were recorded in a transaction (G4)."""
        samples = steps(*every_event(_WORD))
        ids = [step.event_id for step in samples]
        with self.opened_transactional(tmp_path) as provider:
            feed(provider, samples[:3])
            require(_known_ids(provider, ids) == set(ids[:3]), "the ledger differs from the record")
        with self.opened_transactional(tmp_path) as provider:
            require(
                _known_ids(provider, ids) == set(ids[:3]), "the ledger does not survive a restart"
            )

    def test_an_event_at_a_new_position_is_known(self, tmp_path: Path) -> None:
        """An event that comes again later in the log is found by its id (G4)."""
        with self.opened_transactional(tmp_path) as provider:
            samples = steps(self.remember(provider, _WORD))
            feed(provider, samples)
            before = self.state(provider, _WORD)
            with provider.transaction(Fence(LANE, 1)) as transaction:
                known = transaction.applied([samples[0].event_id])
                require(known == {samples[0].event_id}, "the id is not known at a new position")
                transaction.record([samples[0].event_id], Progress(1, "1800000000000-0", 99))
            require(self.state(provider, _WORD) == before, "recording it again changed the state")

    def test_progress_is_what_was_recorded_last(self, tmp_path: Path) -> None:
        """A lane's progress is None at first, and then what its last commit recorded (G4)."""
        samples = steps(*every_event(_WORD))
        with self.opened_transactional(tmp_path) as provider:
            require(provider.progress(LANE) is None, "a fresh store knows a lane's progress")
            for part in (samples[:2], samples[2:5]):
                feed(provider, part)
                _require_progress(provider, progress_at(part[-1]))
            require(provider.progress("p01") is None, "a lane's progress shows in another's")
        with self.opened_transactional(tmp_path) as provider:
            _require_progress(provider, progress_at(samples[4]))

    def test_a_rolled_back_transaction_leaves_nothing(self, tmp_path: Path) -> None:
        """An exception in a transaction undoes its effects, ledger and checkpoint (G4)."""
        first, *rest = steps(*every_event(f"{_WORD} abandoned"))
        with self.opened_transactional(tmp_path) as provider:
            feed(provider, [first])
            before = self.state(provider, _WORD)
            _abandon(provider, rest)
            require(self.state(provider, _WORD) == before, "effects outlive a rollback")
            _require_progress(provider, progress_at(first))
            ids = [step.event_id for step in rest]
            require(
                not _known_ids(provider, ids), "the ledger holds ids of a rolled back transaction"
            )
            feed(provider, rest)
            _require_progress(provider, progress_at(rest[-1]))

    def test_a_stale_owner_is_refused(self, tmp_path: Path) -> None:
        """Once a newer epoch has committed, the older one changes nothing in that lane (G5)."""
        with self.opened_transactional(tmp_path) as provider:
            events = (self.remember(provider, f"{_WORD} {n}") for n in range(3))
            first, second, third = steps(*events)
            feed(provider, [first], epoch=2)
            before = self.state(provider, _WORD)
            refused = False
            try:
                feed(provider, [second], epoch=1)
            except LeaseLost:
                refused = True
            require(refused, "a transaction of an older epoch was not refused with LeaseLost")
            require(self.state(provider, _WORD) == before, "a stale owner changed the state")
            _require_progress(provider, progress_at(first, epoch=2))
            feed(provider, [third], epoch=2)
            with provider.transaction(Fence("p01", 1)):
                pass


def _known_ids(provider: TransactionalProvider, ids: list[str]) -> set[str]:
    with provider.transaction(Fence(LANE, 1)) as transaction:
        return set(transaction.applied(ids))


def _require_knows(provider: MemoryProvider, sent: SampleStep, unsent: SampleStep) -> None:
    require(provider.knows(sent.event_id, hook_context(sent)), "knows denies a remembered event")
    denied = not provider.knows(unsent.event_id, hook_context(unsent))
    require(denied, "knows claims an event that was never sent")


def _abandon(provider: TransactionalProvider, samples: list[SampleStep]) -> None:
    with suppress(_Abandoned), provider.transaction(Fence(LANE, 1)) as transaction:
        call_hooks(provider, samples)
        transaction.record([step.event_id for step in samples], progress_at(samples[-1]))
        raise _Abandoned


def _require_progress(provider: TransactionalProvider, expected: Progress) -> None:
    seen = provider.progress(LANE)
    require(seen == expected, f"progress is {seen}, recorded was {expected}")


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
                pytest.skip(f"not claimed: delivery is {provider.delivery!r}")
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
                pytest.skip("not claimed: takes one turn at a time")
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


def _send(provider: MemoryProvider, samples: Sequence[SampleStep]) -> None:
    turns = [
        TurnCall(step.event, hook_context(step))
        for step in samples
        if isinstance(step.event, TurnCompleted)
    ]
    failed = provider.sync_turns(turns)
    require(isinstance(failed, Mapping), f"sync_turns returns a mapping, not {failed!r}")
    require(not failed, f"sync_turns reports good turns as failed: {failed!r}")
