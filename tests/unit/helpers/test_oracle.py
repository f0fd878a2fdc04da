"""The oracle of the fault suite sees what it is there to see."""

import os

import pytest
from helpers.faults import results, sink
from helpers.faults.load import Load
from helpers.faults.oracle import Effect, Receipt, judge, latency
from helpers.faults.results import Round
from helpers.faults.scale import share_of
from helpers.faults.trial import Fault, demand
from memorybus.events import Position, Scope, SessionRef, TurnCompleted
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import OwnedLane
from memorybus_providers.base import HookContext, ProviderConfig
from memorybus_workers.lanes.leases import Lease, Leases

RECEIPTS = [Receipt(f"e{n}", "s", n) for n in range(3)]


def effect(number: int, **given: int) -> Effect:
    """Return the effect of the n-th event of a session."""
    return Effect(f"e{number}", "s", number, **given)


def test_a_run_that_holds_has_no_faults():
    """G1, G3, G4: accepted, applied once, in order: nothing to say."""
    verdict = judge(RECEIPTS, [effect(0), effect(1), effect(2)])
    assert verdict.faults() == []
    assert (verdict.accepted, verdict.applied) == (3, 3)


def test_a_run_without_load_fails():
    """A run that accepted nothing proves nothing."""
    assert judge([], []).faults() == ["nothing was accepted"]


def test_a_missing_event_is_lost():
    """G1: an accepted event that is nowhere is named."""
    verdict = judge(RECEIPTS, [effect(0), effect(2)])
    assert verdict.lost == ("e1",)
    assert verdict.faults() == ["1 lost: ('e1',)"]


@pytest.mark.parametrize("where", ["parked", "spooled"])
def test_a_parked_or_spooled_event_is_not_lost(where):
    """G1, G6: what waits in a dead letter or in a spool is not lost."""
    verdict = judge(RECEIPTS, [effect(0), effect(2)], **{where: {"e1"}})
    assert verdict.faults() == []


def test_a_repeat_is_counted_and_allowed_by_number():
    """G4: every effect too many counts; only as many as the class may have are let pass."""
    verdict = judge(RECEIPTS, [effect(0), effect(1), effect(0), effect(0), effect(2)])
    assert verdict.twice == {"e0": 2}
    assert verdict.faults(may_repeat=2) == []
    assert verdict.faults(may_repeat=1) == ["2 effects too many (1 allowed): {'e0': 2}"]


def test_order_is_judged_by_first_effects():
    """G3: a repeat is no disorder, an event before its predecessor is."""
    assert judge(RECEIPTS, [effect(0), effect(1), effect(0), effect(2)]).disordered == ()
    assert judge(RECEIPTS, [effect(0), effect(2), effect(1)]).disordered == ("s",)


def test_sessions_are_judged_apart():
    """G3: order is promised within a key, not between keys."""
    receipts = [*RECEIPTS[:2], Receipt("x0", "x", 0)]
    effects = [effect(0), Effect("x0", "x", 0), effect(1)]
    assert judge(receipts, effects).faults() == []


def test_an_effect_of_a_stale_owner_is_seen():
    """G5: an epoch below one that the lane has seen counts, in its own lane only."""
    effects = [effect(0, epoch=2), effect(1, epoch=1), effect(2, epoch=1, lane=1)]
    verdict = judge(RECEIPTS, effects)
    assert verdict.stale == 1
    assert verdict.faults() == ["1 effects of a stale owner (0 allowed)"]
    assert verdict.faults(may_be_stale=1) == []


def test_an_effect_without_a_receipt_is_seen():
    """G1: an event whose writer died over it may be applied, but is counted."""
    verdict = judge(RECEIPTS[:2], [effect(0), effect(1), effect(2)])
    assert verdict.faults(may_exceed=1) == []
    assert verdict.faults() == ["1 applied without a receipt (0 allowed)"]


def test_latency_is_that_of_a_share():
    """The share of the events that is named waited no longer than what is returned."""
    effects = [effect(n, said=1_000, at=1_000 + 10 * n) for n in range(100)]
    assert latency(effects, 0.5) == 0.5
    assert latency(effects, 0.99) == 0.99
    with pytest.raises(ValueError, match="no effect"):
        latency([], 0.5)


def test_a_torn_line_of_the_journal_is_no_receipt(tmp_path):
    """A line without its end was not fsynced whole: it does not count."""
    (tmp_path / "journal").write_text("e0 s 0 spooled\ne1 s 1 logged\ne2 s 2 spo")
    receipts = Load.__new__(Load)
    receipts._journal = tmp_path / "journal"
    assert receipts.receipts() == [Receipt("e0", "s", 0), Receipt("e1", "s", 1, "logged")]


def context(number: int) -> HookContext:
    """Return what a hook is told about the n-th event."""
    ref = SessionRef("s", "s")
    return HookContext(Scope(), ref, f"e{number}", Position(3, f"{number}-0", number), 0, 1.0)


@pytest.mark.parametrize(("kind", "count"), [("Blind", 2), ("Lookup", 2), ("Keyed", 1)])
def test_a_sink_hides_only_what_its_class_declares(kind, count, tmp_path):
    """G4: an event sent twice is there twice, unless the backend takes our id as its key."""
    provider = getattr(sink, kind)(ProviderConfig(name="x", home=tmp_path))
    provider.open()
    for _ in range(2):
        provider.sync_turn(TurnCompleted(user="0 x", ordinal=0), context(1))
    provider.shutdown()
    found = sink.effects(tmp_path)
    assert [(e.event_id, e.lane, e.n) for e in found] == [("e1", 3, 1)] * count
    assert sink.refused(tmp_path) == (kind == "Keyed")


def test_what_came_twice_can_be_explained(tmp_path):
    """G4: of each effect the process, thread and times are known, and what was asked before it."""
    provider = sink.Lookup(ProviderConfig(name="x", home=tmp_path, options={"busy": 0.1}))
    provider.open()
    turn = TurnCompleted(user="0 x", ordinal=0)
    assert not provider.knows("e1", context(1))
    provider.sync_turn(turn, context(1))
    assert provider.knows("e1", context(1))
    provider.sync_turn(turn, context(1))
    provider.sync_turn(turn, context(2))
    provider.shutdown()
    story = sink.story(tmp_path, "e1")
    assert [line.partition(":")[0] for line in story] == ["effect", "effect", "asked", "asked"]
    assert all(f"'pid': {os.getpid()}, 'thread': 'MainThread'" in line for line in story[:2])
    assert [line.rpartition(": ")[2] for line in story[2:]] == ["not held", "held"]


def test_no_event_is_under_way_at_two_deaths(tmp_path):
    """G6: an event that seems to end workers is parked, so crash points do not meet one twice."""

    def die(name: str) -> None:
        raise ProcessLookupError(name)

    def deaths() -> list[bool]:
        provider = sink.Blind(ProviderConfig(name="x", home=tmp_path, crash=die))
        provider.open()
        try:
            return [died(provider, number) for number in (1, 2)]
        finally:
            provider.shutdown()

    def died(provider: sink.Blind, number: int) -> bool:
        try:
            provider.sync_turn(TurnCompleted(user="0 x", ordinal=number), context(number))
        except ProcessLookupError:
            return True
        return False

    assert deaths() == [True, True]
    assert deaths() == [True, False]  # a second process dies over the other event


@pytest.mark.parametrize("kind", ["Blind", "Lookup", "Keyed", "Many"])
def test_an_effect_bears_its_owners_epoch(kind, tmp_path, monkeypatch):
    """G5: whatever its class, a sink notes under which epoch its process took the lane."""

    def acquire(*_: object) -> Lease:
        return Lease(OwnedLane(Keys("x"), 3, "x", 7, "w"), 0.0)

    monkeypatch.setattr(Leases, "acquire", acquire)
    provider = getattr(sink, kind)(ProviderConfig(name="x", home=tmp_path))
    provider.open()
    for number, partition in enumerate((3, 4)):
        Leases.acquire(None, None, "x", partition)
        provider.sync_turn(TurnCompleted(user="x", ordinal=number), context(number))
    provider.shutdown()
    assert [effect.epoch for effect in sink.effects(tmp_path)] == [7, 7]


@pytest.mark.parametrize(
    ("fired", "said"), [([], "0 of 1 faults fired"), ([Fault("kill", 0)], "nothing was in flight")]
)
def test_an_idle_run_proves_nothing(fired, said):
    """A run in which no fault fired, or one found nothing in flight, fails."""
    demand([Fault("kill", 1)], 1)
    with pytest.raises(AssertionError, match=said):
        demand(fired, 1)


@pytest.mark.parametrize("kind", ["Forgetful", "Doubling", "Muddled"])
def test_a_broken_sink_is_found(kind, tmp_path):
    """G1, G3, G4: what a sink forgets, doubles or muddles does not pass."""
    provider = getattr(sink, kind)(ProviderConfig(name="x", home=tmp_path))
    provider.open()
    receipts = [Receipt(f"e{number}", "s", number) for number in range(500)]
    for number in range(500):
        provider.sync_turn(TurnCompleted(user="x", ordinal=number), context(number))
    provider.shutdown()
    assert judge(receipts, sink.effects(tmp_path)).faults()


WHEN = ("abc", "2026-11-23", 7)


def test_rounds_of_a_row_add_up():
    """Counts add up, measures give their range, and what no round counted is no zero."""
    rounds = [
        Round(row="kills", share=0.25, faults=18, events=100, lost=0, besides=besides, passed=True)
        for besides in ({"stale": 1, "slowest_s": 0.5}, {"stale": 2, "slowest_s": 1.5})
    ]
    (line,) = results.together(rounds, *WHEN)
    assert (line.rounds, line.failed, line.faults, line.events, line.lost) == (2, 0, 36, 200, 0)
    assert line.twice is None
    assert line.besides == {"stale": 3, "slowest_s": (0.5, 1.5)}


def test_a_row_that_runs_again_replaces_its_line(tmp_path):
    """The file has one line for each row, of its last run; other rows stay."""
    path = tmp_path / "faults.jsonl"
    results.write(
        results.together([Round(row="a", faults=1), Round(row="b", faults=2)], *WHEN), path
    )
    results.write(results.together([Round(row="a", faults=3)], *WHEN), path)
    assert [(line.row, line.faults) for line in results.read(path)] == [("a", 3), ("b", 2)]


@pytest.mark.parametrize("text", ["0", "-0.1", "1.01", "nan", "inf", "a quarter"])
def test_a_share_is_above_nothing_and_at_most_all(text):
    """What is no share of a row's counts is refused, with one that is."""
    with pytest.raises(ValueError, match=r"SHARE=0\.25"):
        share_of(text, quick=False)


def test_a_share_is_of_the_long_form():
    """Without SHARE a row does all; the short form has no share to take."""
    assert (share_of("", quick=False), share_of("0.25", quick=False)) == (1.0, 0.25)
    with pytest.raises(ValueError, match="QUICK=1"):
        share_of("0.25", quick=True)
