"""Rules of recall: for any text, it finds only the asker's memories, and within its deadline."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from memorybus.clock import SYSTEM
from memorybus.errors import ProviderError
from memorybus.events import Scope, SessionRef, TurnCompleted

from memorybus_providers.base import HookContext, MemoryProvider, RecallScope, Recollection
from memorybus_providers.contract.rules import Rules, require
from memorybus_providers.contract.samples import (
    AT,
    EVERYONE,
    HERE,
    HOSTILE_IDS,
    HOSTILE_TEXTS,
    OTHER_USER,
    OTHERS,
    SESSION,
    WORKSPACES,
    SampleStep,
    every_event,
    feed,
    handles_event,
    hook_context,
    recall_context,
    steps,
)

_REMEMBERED_TEXT = "The lighthouse keeper collects wolpertinger stamps."
_QUESTION = "Who collects wolpertinger stamps?"
_WORD = "wolpertinger"


class RecallRules(Rules):
    """Recall finds the asker's memories and no others, and any text is safe."""

    def test_recall_finds_what_was_remembered(self, tmp_path: Path) -> None:
        """A question that shares words with a memory finds it."""
        with self.opened_recalling(tmp_path) as provider:
            feed(provider, steps(self.remember(provider, _REMEMBERED_TEXT)))
            require(self._finds(provider, HERE), "what was remembered is not recalled")

    def test_recall_survives_a_restart(self, tmp_path: Path) -> None:
        """Another instance on the same state recalls what the first one remembered."""
        with self.opened_recalling(tmp_path) as provider:
            feed(provider, steps(self.remember(provider, _REMEMBERED_TEXT)))
        with self.opened_recalling(tmp_path) as provider:
            require(self._finds(provider, HERE), "a second instance does not recall it")

    def test_recall_as_of_a_time_knows_nothing_later(self, tmp_path: Path) -> None:
        """A provider that declares `as_of` leaves out what was remembered later."""
        with self.opened_recalling(tmp_path) as provider:
            if not provider.capabilities.as_of:
                pytest.skip("not claimed: it does not say that it can recall as of a time")
            feed(provider, steps(self.remember(provider, _REMEMBERED_TEXT)))
            for moment, expected in ((AT - 1, False), (AT, True)):
                then = msgspec.structs.replace(recall_context(HERE), as_of=moment)
                found = any(
                    _WORD in recollection.text
                    for recollection in provider.prefetch(_QUESTION, then)
                )
                require(found is expected, f"as of {moment}, {AT} being when it was said: {found}")

    def test_recall_keeps_scopes_apart(self, tmp_path: Path) -> None:
        """Nothing outside the scope of a recall is returned; None means everyone's memories."""
        with self.opened_recalling(tmp_path) as provider:
            feed(provider, steps(self.remember(provider, _REMEMBERED_TEXT)))
            for scope in (OTHER_USER, OTHERS):
                require(not self._finds(provider, scope), f"{scope} recalls another's memory")
            require(self._finds(provider, EVERYONE), "everyone's memories leave this one out")

    def test_recall_keeps_workspaces_apart(self, tmp_path: Path) -> None:
        """A turn is recalled only in its own workspace; the empty name is a workspace like others.

        Writes to the two stores are not tested: they belong to the agent or to the person.
        """
        with self.opened_recalling(tmp_path) as provider:
            if not handles_event(provider, TurnCompleted):
                pytest.skip("not claimed: it remembers no turns")
            for n, where in enumerate(WORKSPACES, 1):
                event = TurnCompleted(user=f"{_WORD} number{n}", assistant="Indeed.")
                feed(provider, [SampleStep(n, event, _in(where))])
            for n, where in enumerate(WORKSPACES, 1):
                _require_only(self._recall(provider, _in(where)), f"number{n}", repr(where))

    def test_recall_keeps_hostile_ids_apart_and_at_home(self, tmp_path: Path) -> None:
        """Ids may have any characters; each is its own scope, and none leads out of the home."""
        home = tmp_path / "home"
        home.mkdir()
        with self.opened_recalling(home) as provider:
            for n, owner in enumerate(HOSTILE_IDS, 1):
                event = self.remember(provider, f"{_WORD} number{n}")
                feed(provider, [SampleStep(n, event, Scope(agent=owner, user=owner))])
            for n, owner in enumerate(HOSTILE_IDS, 1):
                recollections = self._recall(provider, Scope(agent=owner, user=owner))
                _require_only(recollections, f"number{n}", owner)
        outside = [path for path in tmp_path.iterdir() if path != home]
        require(not outside, f"files outside the home: {outside}")

    def test_hostile_texts_break_nothing(self, tmp_path: Path) -> None:
        """Any text can be written and asked for; results stay plain text."""
        with self.opened(tmp_path) as provider:
            for number, text in enumerate(HOSTILE_TEXTS):
                feed(provider, steps(*every_event(text), first=1 + 100 * number))
                _require_plain(self._recall(provider, HERE, text), text)
            _require_plain(self._recall(provider, HERE, "lone \ud800 surrogate"), "a surrogate")

    def test_prefetch_keeps_its_deadline(self, tmp_path: Path) -> None:
        """A recall is answered within its deadline, even for a query of 100,000 characters."""
        with self.opened(tmp_path) as provider:
            if not provider.capabilities.recall:
                pytest.skip("not claimed: no recall")
            feed(provider, steps(self.remember(provider, _REMEMBERED_TEXT)))
            for query in (_QUESTION, "", HOSTILE_TEXTS[-1], HOSTILE_TEXTS[-2]):
                began = SYSTEM.monotonic()
                self._recall(provider, HERE, query)
                took = SYSTEM.monotonic() - began
                require(took <= self.deadline, f"prefetch took {took:.2f} s of {self.deadline} s")

    def test_an_unknown_tool_is_an_error(self, tmp_path: Path) -> None:
        """An unknown tool raises a provider error or answers with an ``error``."""
        with self.opened(tmp_path) as provider:
            if not provider.capabilities.tools:
                pytest.skip("not claimed: no tools")
            try:
                result = provider.handle_tool_call("no_such_tool", {}, _any_context())
            except (ProviderError, NotImplementedError):
                return
            require("error" in result, f"an unknown tool answered {result!r}")

    def _recall(
        self, provider: MemoryProvider, scope: Scope | RecallScope, query: str = _QUESTION
    ) -> Sequence[Recollection]:
        return provider.prefetch(query, recall_context(scope, self.deadline))

    def _finds(self, provider: MemoryProvider, scope: Scope | RecallScope) -> bool:
        return any(_WORD in r.text for r in self._recall(provider, scope))


def _in(workspace: str) -> Scope:
    return msgspec.structs.replace(HERE, workspace=workspace)


def _require_only(recollections: Sequence[Recollection], word: str, owner: str) -> None:
    texts = [r.text for r in recollections if _WORD in r.text]
    require(texts, f"{owner[:20]!r} recalls nothing")
    strangers = [text for text in texts if not re.search(rf"\b{word}\b", text)]
    require(not strangers, f"{owner[:20]!r} recalls another's {strangers}")


def _require_plain(recollections: Sequence[Recollection], text: str) -> None:
    for recollection in recollections:
        require(
            isinstance(recollection, Recollection) and isinstance(recollection.text, str),
            f"{text[:20]!r} recalls {recollection!r}",
        )
        try:
            msgspec.json.encode(recollection)
        except (TypeError, ValueError) as error:
            require(False, f"{text[:20]!r} recalls what cannot be sent: {error}")


def _any_context() -> HookContext:
    return hook_context(SampleStep(1, every_event("tool")[0]))


_OTHER_SESSION = SessionRef(id="another-session", root="another-session")
_LATER_NUMBER = 100
"""A number that is higher than all that `every_event` uses."""

Pairs = list[tuple[str, str]]


class DigestRules(Rules):
    """The digest represents the whole state, and nothing else (G8)."""

    def test_the_same_events_give_the_same_digest(self, tmp_path: Path) -> None:
        """Two instances with the same events, differently batched, have the same digest (G8)."""
        samples = self._story(tmp_path, "the same")
        one = self._digest(tmp_path / "one", samples)
        two = self._digest(tmp_path / "two", *([step] for step in samples))
        require(one == two, f"the same events gave {_differing(one, two)}")

    def test_another_event_gives_another_digest(self, tmp_path: Path) -> None:
        """An event that is remembered changes the digest (G8)."""
        samples = self._story(tmp_path, "the first")
        more = self._story(tmp_path, "one thing more", first=_LATER_NUMBER)[-1:]
        before = self._digest(tmp_path / "one", samples)
        after = self._digest(tmp_path / "two", samples, more)
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
                pytest.skip("not claimed: gives no digest")
            yield provider


def _differing(one: Pairs, two: Pairs) -> list[str]:
    """Return the first keys that differ."""
    return sorted(key for key, _ in set(one) ^ set(two))[:3] or [key for key, _ in one][:3]
