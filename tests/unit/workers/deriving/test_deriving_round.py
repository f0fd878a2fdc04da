"""A round of deriving: published once, settled when it is safe, whatever a deriver returns."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from memorybus.errors import Unavailable
from memorybus.events import AnyEvent, Derived, Scope, SessionEnded, SessionRef, TurnCompleted
from memorybus.testing import FakeClock
from memorybus_providers.base import ProviderConfig
from memorybus_providers.contract.samples import SESSION, SampleStep, feed
from memorybus_providers.deriving.deriver import Conclusion, Deriver, Material
from memorybus_providers.deriving.extractive import ExtractiveDeriver
from memorybus_providers.deriving.model import BudgetSpent, UnreadableAnswer
from memorybus_providers.holographic import HolographicProvider
from memorybus_workers.deriving.round import MAX_DUE, MAX_TRIES, DerivingRound

ADA = Scope(agent="coder", user="ada")


class Published:
    """Takes events as a publisher does, and remembers them by id."""

    def __init__(self) -> None:
        self.events: dict[str, Derived] = {}
        self.places: list[tuple[str, Scope, SessionRef]] = []
        self.answers = True

    def publish(
        self, event: Derived, *, key: str, scope: Scope, session: SessionRef, event_id: str, at: int
    ) -> None:
        """Take an event; the same id must come with the same event."""
        assert self.events.setdefault(event_id, event) == event
        self.places.append((key, scope, session))

    def flush(self, level: str, timeout: float) -> bool:
        """Return whether Redis has all."""
        return self.answers


class OnlyWorker:
    """The turn of a worker that is alone, until a test takes it away."""

    has = True

    def keep(self) -> bool:
        """Take it."""
        return self.has

    def holds(self) -> bool:
        """Return whether it was not taken away."""
        return self.has


def deriving_round(derivers: Sequence[Deriver], taken: Published) -> DerivingRound:
    """Return a round of the only worker."""
    return DerivingRound(derivers, taken, OnlyWorker())


class Scripted(Deriver):
    """Returns what a test gives it."""

    name = "scripted"
    revision = "1"

    def __init__(self, script: Callable[[Material], Sequence[Conclusion]]) -> None:
        self.script = script

    def derive(self, material: Material) -> Sequence[Conclusion]:
        """Return what the script returns."""
        return self.script(material)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[HolographicProvider]:
    """A store in which a session of Ada's has ended."""
    names = ("extractive", "scripted")
    config = ProviderConfig(
        name="holographic", home=tmp_path, derive_every_turns=20, derivers=names
    )
    provider = HolographicProvider(config)
    provider.open()
    talk = TurnCompleted(user="I keep bees in Bergen.", assistant="Noted.", ordinal=0)
    tell(provider, talk, SessionEnded())
    yield provider
    provider.shutdown()


def tell(store: HolographicProvider, *events: AnyEvent, first: int = 1, **place: Any) -> None:
    """Apply events as a lane does."""
    steps = [SampleStep(n, event, ADA, **place) for n, event in enumerate(events, first)]
    feed(store, steps)


def test_a_conclusion_is_published_under_the_key_of_the_person(store):
    """Conclusions have the order key of the person's store, and the session's scope."""
    taken = Published()
    assert deriving_round([ExtractiveDeriver()], taken).run(store) == 1
    assert set(taken.places) == {("store:ada:user", ADA, SESSION)}
    assert {event.kind for event in taken.events.values()} == {"summary", "topic", "profile"}
    assert store.due("extractive", 10) == []


def test_nothing_is_settled_before_redis_has_it(store):
    """G1: while Redis is away the session stays due, and comes again under the same ids."""
    taken = Published()
    deriving = deriving_round([ExtractiveDeriver()], taken)
    taken.answers = False
    assert deriving.run(store) == 0
    assert len(store.due("extractive", 10)) == 1
    before, taken.answers = dict(taken.events), True
    assert deriving.run(store) == 1
    assert taken.events == before


def test_the_newest_cause_of_a_session_covers_the_earlier_ones(store):
    """A session that became due several times is derived once, and settled for all of them."""
    tell(store, *[SessionEnded()] * 3, first=5)
    taken = Published()
    assert deriving_round([ExtractiveDeriver()], taken).run(store) == 4
    assert len(taken.events) == 3


LIES: dict[str, Callable[[Material], Conclusion]] = {
    "an event of others": lambda _: Conclusion(kind="fact", text="x", sources=("ab" * 16,)),
    "no source": lambda _: Conclusion(kind="fact", text="Ada likes mallets.", sources=()),
    "no text": lambda _: Conclusion(kind="summary", text=" \n", sources=()),
    "a conclusion that it was not given": lambda material: Conclusion(
        kind="fact", text="x", sources=(*material.sources,), supersedes=("ab" * 16,)
    ),
    "a novel (G10)": lambda material: Conclusion(
        kind="fact", text="x" * 9_999, sources=(*material.sources,)
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_conclusion_without_evidence_is_not_published(store, lie):
    """What cites or supersedes what nobody gave the deriver is left out; the rest is published."""

    def script(material: Material) -> list[Conclusion]:
        true = Conclusion(kind="fact", text="Ada keeps bees.", sources=tuple(material.sources))
        return [LIES[lie](material), true]

    taken = Published()
    deriving_round([Scripted(script)], taken).run(store)
    assert [event.text for event in taken.events.values()] == ["Ada keeps bees."]


def test_a_deriver_that_fails_is_left_after_some_tries(store, caplog):
    """A cause whose deriver fails again and again is left and logged, and holds up no other."""

    def fail(material: Material) -> list[Conclusion]:
        raise ValueError("no model")

    deriving = deriving_round([Scripted(fail)], Published())
    assert [deriving.run(store) for _ in range(MAX_TRIES)] == [0] * (MAX_TRIES - 1) + [1]
    assert store.due("scripted", 10) == []
    assert "which is left" in caplog.text


def test_a_deriver_that_fails_holds_up_no_other_session(store):
    """The other sessions of a round are settled."""
    tell(store, SessionEnded(), first=9, session=SessionRef(id="other", root="other"))

    def script(material: Material) -> list[Conclusion]:
        if material.due.session == SESSION:
            raise ValueError("no model")
        return []

    deriving_round([Scripted(script)], Published()).run(store)
    assert [due.session for due in store.due("scripted", 10)] == [SESSION]


def test_a_model_that_is_down_holds_up_no_other_deriver(store, caplog):
    """While it is down its sessions stay due, and what needs no model is concluded."""

    def fail(material: Material) -> list[Conclusion]:
        raise Unavailable("the model is down")

    taken = Published()
    deriving = deriving_round([Scripted(fail), ExtractiveDeriver()], taken)
    assert [deriving.run(store) for _ in range(MAX_TRIES + 1)] == [1] + [0] * MAX_TRIES
    assert {event.deriver for event in taken.events.values()} == {"extractive"}
    assert len(store.due("scripted", 10)) == 1
    assert caplog.text.count("the model is down") == 1


def test_a_person_without_budget_holds_up_nobody(store):
    """Who has spent their budget waits; the sessions of others are derived."""
    for number in range(MAX_DUE):
        session = SessionRef(id=f"s{number}", root=f"s{number}")
        tell(store, SessionEnded(), first=number + 9, session=session)
    bob = Scope(agent="coder", user="bob")
    feed(store, [SampleStep(99, SessionEnded(), bob)])
    asked = []

    def script(material: Material) -> list[Conclusion]:
        asked.append(material.due.scope.user)
        if material.due.scope.user == "ada":
            raise BudgetSpent("tokens_per_person")
        return []

    deriving_round([Scripted(script)], Published()).run(store)
    assert {due.scope for due in store.due("scripted", 99)} == {ADA}
    assert asked == ["ada", "bob"]


def test_what_never_fits_is_left_at_once(store):
    """An answer that cannot be read is not paid for again."""
    asked = []

    def fail(material: Material) -> list[Conclusion]:
        asked.append(material)
        raise UnreadableAnswer("a novel")

    deriving = deriving_round([Scripted(fail)], Published())
    assert [deriving.run(store), deriving.run(store)] == [1, 0]
    assert len(asked) == 1


def test_a_session_is_derived_again_only_after_a_rest(store):
    """What becomes due meanwhile waits, and is derived then; the wall clock does not matter."""
    clock, asked = FakeClock(), []
    resting = Scripted(lambda material: asked.append(material) or [])
    resting.rest = 300.0
    deriving = DerivingRound([resting], Published(), OnlyWorker(), clock=clock)
    deriving.run(store)
    tell(store, SessionEnded(), first=9)
    clock.wall_ms -= 10_000_000
    deriving.run(store)
    assert len(asked) == 1
    assert len(store.due("scripted", 10)) == 1
    clock.advance(301)
    deriving.run(store)
    assert len(asked) == 2
    assert store.due("scripted", 10) == []


def test_what_was_concluded_without_the_turn_is_not_published(store):
    """Whoever lost the turn while the deriver thought publishes nothing; the session stays due."""
    turn, taken = OnlyWorker(), Published()

    def script(material: Material) -> list[Conclusion]:
        turn.has = False
        return [Conclusion(kind="fact", text="x", sources=tuple(material.sources))]

    assert DerivingRound([Scripted(script)], taken, turn).run(store) == 0
    assert taken.events == {}
    assert len(store.due("scripted", 10)) == 1
