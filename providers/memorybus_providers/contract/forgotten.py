"""Rules of erasure and export: all memories of an owner, and none of another's.

They are skipped for a provider that does not declare `forgets` or `exports`. Those that recall are
also skipped for a provider that does not recall, or not word for word.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest
from memorybus.events import Scope, SessionRef, SessionSwitched, TurnCompleted

from memorybus_providers.base import MemoryProvider, RecallScope, Residue
from memorybus_providers.contract.rules import Rules, require
from memorybus_providers.contract.samples import (
    HERE,
    OTHER_USER,
    OTHERS,
    SESSION,
    SampleStep,
    every_event,
    feed,
    handles_event,
    recall_context,
)

_GONE_WORD, _KEPT_WORD, _LATER_WORD = "wolpertinger", "quince", "medlar"
_PERSON: Final = RecallScope(None, HERE.user, None)
_OTHER_AGENT: Final = msgspec.structs.replace(HERE, agent=OTHERS.agent)
_ASKED_SCOPES: Final[tuple[tuple[RecallScope, tuple[Scope, ...], Scope], ...]] = (
    (_PERSON, (HERE, _OTHER_AGENT), OTHER_USER),
    (RecallScope(HERE.agent, None, None), (HERE, OTHER_USER), OTHERS),
    (RecallScope.own(HERE), (HERE,), OTHER_USER),
)
"""Scopes to erase, each with the owners whose memories are erased, and one whose memories stay."""


class ForgetRules(Rules):
    """An erasure removes all of a scope and nothing else; an export shows what it would remove."""

    def test_what_is_forgotten_is_not_recalled(self, tmp_path: Path) -> None:
        """A person's or an agent's memories are erased, also for a later instance; others' stay."""
        for number, (asked, gone, stays) in enumerate(_ASKED_SCOPES):
            home = tmp_path / str(number)
            with self._opened_forgetting(home) as provider:
                for n, scope in enumerate(gone, 1):
                    feed(provider, [self._step_about(provider, n, _GONE_WORD, scope)])
                feed(provider, [self._step_about(provider, 9, _KEPT_WORD, stays)])
                _forget(provider, asked)
            with self._opened_forgetting(home) as provider:
                for scope in gone:
                    require(not self._recalls(provider, _GONE_WORD, scope), f"{asked} left {scope}")
                require(self._recalls(provider, _KEPT_WORD, stays), f"{asked} erased {stays}, too")

    def test_what_is_forgotten_leaves_no_byte(self, tmp_path: Path) -> None:
        """No file of a local provider contains an erased text, unless the residue says so."""
        with self._opened_forgetting(tmp_path) as lane:
            if lane.placement != "local":
                pytest.skip("its state is no file here")
            for n, event in enumerate(every_event(f"I saw a {_GONE_WORD}."), 1):
                feed(lane, [SampleStep(n, event)])
            feed(lane, [self._step_about(lane, 99, _KEPT_WORD, OTHER_USER)])
            with self._opened_forgetting(tmp_path) as provider:
                residue = _forget(provider, _PERSON)
            paths = [path for path in _files(tmp_path) if _holds(path, _GONE_WORD)]
        require(residue.remains or not paths, f"an erased text is still in {paths}")

    def test_a_forgotten_scope_is_as_if_it_had_never_been(self, tmp_path: Path) -> None:
        """After an erasure the state is as if the scope's events had never been applied (G8)."""
        states: list[object] = []
        for forgets in (True, False):
            with self._opened_forgetting(tmp_path / str(forgets)) as provider:
                feed(provider, [self._step_about(provider, 1, _KEPT_WORD, OTHER_USER)])
                if forgets:
                    feed(provider, [self._step_about(provider, 2, _GONE_WORD, HERE)])
                    _forget(provider, _PERSON)
                feed(provider, [self._step_about(provider, 3, _LATER_WORD, OTHERS)])
                digest = provider.digest()
                kept = [
                    self.state(provider, word) for word in (_GONE_WORD, _KEPT_WORD, _LATER_WORD)
                ]
                states.append((kept, None if digest is None else list(digest)))
        require(states[0] == states[1], f"an erasure left {states[0]}, not {states[1]}")

    def test_a_lane_goes_on_after_an_erasure(self, tmp_path: Path) -> None:
        """A lane never restores what another instance erased, and remembers what is said later."""
        with self._opened_forgetting(tmp_path) as lane:
            feed(lane, [self._step_about(lane, 1, _GONE_WORD, HERE)])
            with self._opened_forgetting(tmp_path) as provider:
                _forget(provider, _PERSON)
            feed(lane, [self._step_about(lane, 2, _LATER_WORD, HERE)])
            require(not self._recalls(lane, _GONE_WORD, HERE), "a lane brings back what was erased")
            require(
                self._recalls(lane, _LATER_WORD, HERE), "after an erasure a lane remembers nothing"
            )

    def test_an_erasure_may_come_twice(self, tmp_path: Path) -> None:
        """It is no error to erase a scope that is empty or was erased already."""
        with self._opened_forgetting(tmp_path) as provider:
            _forget(provider, _PERSON)
            feed(provider, [self._step_about(provider, 1, _GONE_WORD, HERE)])
            _forget(provider, _PERSON)
            residue = _forget(provider, _PERSON)
            require(not residue.erased, f"there was nothing, and {residue.erased} were erased")

    def test_an_export_yields_what_is_kept_of_a_scope(self, tmp_path: Path) -> None:
        """An export has each text of the scope with its owner, and no text of anybody else."""
        with self._opened_exporting(tmp_path) as provider:
            feed(provider, [self._step_about(provider, 1, _GONE_WORD, HERE)])
            feed(provider, [self._step_about(provider, 2, _KEPT_WORD, OTHER_USER)])
            memories = list(provider.export(_PERSON))
            texts = [memory.text for memory in memories]
            require(any(_GONE_WORD in text for text in texts), f"the export lacks a text: {texts}")
            require(not any(_KEPT_WORD in text for text in texts), "the export has another's text")
            owners = {memory.user for memory in memories}
            require(owners <= {HERE.user, ""}, f"the export of one person names {owners}")

    def test_an_export_has_nothing_of_what_was_forgotten(self, tmp_path: Path) -> None:
        """After an erasure an export of the same scope is empty."""
        with self._opened_exporting(tmp_path) as provider:
            if not provider.capabilities.forgets:
                pytest.skip("not claimed: erases nothing")
            feed(provider, [self._step_about(provider, 1, _GONE_WORD, HERE)])
            _forget(provider, _PERSON)
            require(not list(provider.export(_PERSON)), "an export still has what was erased")

    def test_owners_are_those_of_whom_something_is_kept(self, tmp_path: Path) -> None:
        """Owners are listed once, in order, from any point; a forgotten owner is not listed."""
        with self._opened_exporting(tmp_path) as provider:
            if provider.owners() is None:
                pytest.skip("not claimed: cannot tell whose memories it keeps")
            for n, scope in enumerate((HERE, OTHER_USER, OTHERS, HERE), 1):
                feed(provider, [self._step_about(provider, n, f"{_KEPT_WORD} {n}", scope)])
            found = _owners(provider)
            wanted = sorted(_names(scope) for scope in (HERE, OTHER_USER, OTHERS))
            require(found == wanted, f"of {wanted} something is kept, and it names {found}")
            later = _owners(provider, wanted[0])
            require(later == wanted[1:], f"behind {wanted[0]} stand {wanted[1:]}, and not {later}")
            if provider.capabilities.forgets:
                _forget(provider, RecallScope.own(HERE))
                require(_names(HERE) not in _owners(provider), "who was forgotten is still named")

    def _step_about(self, provider: MemoryProvider, n: int, word: str, scope: Scope) -> SampleStep:
        return SampleStep(n, self.remember(provider, f"I saw a {word}."), scope)

    def _recalls(self, provider: MemoryProvider, word: str, scope: Scope) -> bool:
        recollections = provider.prefetch(
            f"What of the {word}?", recall_context(scope, self.deadline)
        )
        return any(word in recollection.text for recollection in recollections)

    @contextmanager
    def _opened_forgetting(self, home: Path) -> Iterator[MemoryProvider]:
        """Open an instance, or skip the test if it erases nothing that could be recalled."""
        home.mkdir(exist_ok=True)
        with self.opened_recalling(home) as provider:
            if not provider.capabilities.forgets:
                pytest.skip("not claimed: erases nothing")
            yield provider

    @contextmanager
    def _opened_exporting(self, home: Path) -> Iterator[MemoryProvider]:
        """Open an instance, or skip the test if it does not export texts word for word."""
        with self.opened(home) as provider:
            if not (provider.capabilities.exports and self.verbatim):
                pytest.skip("not claimed: no verbatim export")
            yield provider


def _names(scope: Scope) -> tuple[str, str, str]:
    return scope.agent, scope.user, scope.workspace


def _owners(
    provider: MemoryProvider, after: tuple[str, str, str] | None = None
) -> list[tuple[str, str, str]]:
    owners = provider.owners(after) or ()
    return [(owner.agent, owner.user, owner.workspace) for owner in owners]


def _forget(provider: MemoryProvider, scope: RecallScope) -> Residue:
    residue = provider.forget(scope)
    require(isinstance(residue, Residue), f"forget returns a Residue, not {residue!r}")
    said = " ".join(residue.remains)
    require(_GONE_WORD not in said, f"the residue has an erased text in it: {said}")
    return residue


def _files(home: Path) -> Iterator[Path]:
    return (path for path in home.rglob("*") if path.is_file())


def _holds(path: Path, word: str) -> bool:
    """Return whether a file contains a word without its ending, in upper or lower case."""
    return word[:-2].encode() in path.read_bytes().lower()


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
        recollections = provider.prefetch(
            f"What of the {word}?", recall_context(scope, self.deadline)
        )
        return any(word in recollection.text for recollection in recollections)

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
                pytest.skip("not claimed: retracts no turns")
            yield provider


def _turn(n: int, word: str) -> SampleStep:
    return SampleStep(n, TurnCompleted(user=f"I saw a {word}.", assistant="Noted.", ordinal=n))


def _rewind(*undone: SampleStep) -> SampleStep:
    ids = tuple(step.event_id for step in undone)
    event = SessionSwitched(new_id=SESSION.id, reason="rewind", rewound=True, retracted=ids)
    return SampleStep(_REWIND_NUMBER, event)
