"""What was taken back: no session, tool, copy or rebuild brings it back once it was forgotten."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.contexts import instance_context
from helpers.processes.waiting import wait_until
from helpers.providers.given import GivenInstances
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import PATIENT, thread_worker, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import InvalidEvent, Unavailable
from memorybus.events import Scope, SessionSwitched
from memorybus.recall.model import build_request
from memorybus.recall.requester import RecallRequester
from memorybus.recall.retractions import change_mark, mark_of, purge_answers
from memorybus.redis.keys import Keys
from memorybus_providers.base import HookContext, RecallContext, Recollection
from memorybus_providers.holographic import HolographicProvider
from memorybus_workers.jobs.prefetch import ReadYourWrites, Recaller
from memorybus_workers.lanes import answers

NAME = "holographic"
PIN, QUESTION = "my bank PIN is 4711", "what is my bank PIN?"
WAIT_SECONDS = 60.0
"""Seconds that no test waits unless something is broken."""

SURE: Any = {
    "recall_wait": WAIT_SECONDS,
    "recall_timeout": WAIT_SECONDS,
    "prefetch_deadline": 20.0,
    **PATIENT,
}
"""However slow the machine, a recall sees what it should, and a read finds it in time."""


@pytest.fixture(name="patient")
def _patient(redis_url: str, make_settings: MakeSettings) -> Settings:
    return make_settings(url=redis_url, providers=(NAME,), **SURE)


def holds(session: Session, text: str) -> Callable[[], bool]:
    """Return a look whether a text is warm for a session, which asks again each time."""

    def look() -> bool:
        session.queue_prefetch(QUESTION)
        return text in session.prefetch()

    return look


@pytest.mark.timeout(240)
def test_an_undone_turn_is_recalled_nowhere(patient, spawn, redis_client):
    """G8, G9: warm results, tools, later sessions and a rebuild: what was undone is in none."""
    child = worker(spawn, patient, jobs=1)
    with MemoryBus.connect(patient) as bus:
        session, other = bus.session("s", warm=False), bus.session("other", warm=False)
        session.turn_completed("my bank is the one at the harbour", "Noted.")
        wait_until(lambda: bus.tools().named("memory_add"), "the tools are known", WAIT_SECONDS)
        call, pin = bus.new_id(), {"content": "the PIN of the bank: 4711"}
        assert session.call_tool("memory_add", pin, timeout=WAIT_SECONDS, event_id=call)["ok"]
        receipt = session.turn_completed(PIN, "Noted: 4711.")
        for one in (session, other):
            wait_until(holds(one, "4711"), "the PIN is warm", WAIT_SECONDS)
        after = session.undo(receipt, call)
        assert after.prefetch() == "", "what was warm may hold it"
        wait_until(
            lambda: "4711" not in other.prefetch(), "another session's is void", WAIT_SECONDS
        )
        for one in (after, other, bus.session("new", warm=False)):
            wait_until(holds(one, "harbour"), "what was not undone is warm", WAIT_SECONDS)
            assert "4711" not in one.prefetch()
        found = after.call_tool("memory_search", {"query": "bank PIN 4711"}, timeout=WAIT_SECONDS)
        assert "harbour" in str(found)
        assert "4711" not in str(found)
        assert "4711" not in bus.recall(QUESTION, timeout=WAIT_SECONDS).text
        assert bus.flush("logged", WAIT_SECONDS)
    wait_applied(redis_client, patient, NAME, WAIT_SECONDS)
    assert ran(spawn, patient, "verify", NAME)["ok"]
    ran(spawn, patient, "rebuild", NAME, "--yes")
    with MemoryBus.connect(patient) as bus:
        found = bus.recall(QUESTION, timeout=WAIT_SECONDS)
        assert "harbour" in found.text
        assert "4711" not in found.text
    assert child.terminate() == 0


def test_the_publisher_says_what_is_taken_back(settings):
    """The rewind names each event once, in the session's next epoch; what is no id is refused."""
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        receipt = session.turn_completed(PIN, "Noted.")
        after = session.undo(receipt, receipt.event_id)
        assert (after.id, after.ref.epoch, after.key) == ("s", 1, session.key)
        for wrong in ("", "s", "0" * 31, "g" * 32):
            with pytest.raises(InvalidEvent, match="32 hex digits"):
                after.undo(wrong)
        assert after.undo().ref.epoch == 2


# -- the mark of warm results ---------------------------------------------------------------------


class Held:
    """A provider that answers once it is told to."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def prefetch(self, query: str, ctx: RecallContext) -> list[Recollection]:
        self.asked.set()
        assert self.go_on.wait(WAIT_SECONDS)
        return [Recollection(f"{PIN}, for {query}")]


def purge(client: redis.Redis, settings: Settings, scope: Scope, provider: str) -> None:
    """Do what a correction of the agent's memory does for all persons, and an erasure."""
    purge_answers(settings, [provider])


@pytest.mark.parametrize("take_back", [change_mark, purge])
def test_a_recall_under_way_is_not_read_afterwards(redis_client, patient, take_back):
    """G9: what was recalled before something was forgotten, and stored after it, is not read."""
    held = Held()
    applied = ReadYourWrites(redis_client, Keys(patient.namespace), patient.recall_wait, SYSTEM)
    instances = GivenInstances(patient, redis_client, lambda name: held)
    recaller = Recaller(redis_client, patient, SYSTEM, instances, applied)
    with MemoryBus.connect(patient) as bus:
        session = bus.session("s", warm=False)
        wait_until(lambda: not bus.warm.wants_connection, "the cache is connected", WAIT_SECONDS)
        for round_ in range(2):
            want = build_request(session.scope, session.ref, f"round {round_}", 2_000)
            RecallRequester(redis_client, patient).request(session.slot, want, [])
            recall = threading.Thread(target=recaller.warm, args=(session.slot, NAME))
            recall.start()
            assert held.asked.wait(WAIT_SECONDS)
            if not round_:
                take_back(redis_client, patient, session.scope, NAME)
            held.go_on.set()
            recall.join(WAIT_SECONDS)
            assert (f"round {round_}" in session.prefetch()) == bool(round_)
    assert redis_client.hlen(Keys(patient.namespace).warm(session.slot)) > 0, "it was stored"


def test_nobody_elses_warm_results_are_touched(redis_client, settings):
    """What one person takes back voids that person's results of that provider, and no others."""
    ann, bob = Scope(user="ann"), Scope(user="bob")
    change_mark(redis_client, settings, ann, "one")
    marks = [mark_of(redis_client, settings, who, of) for who in (ann, bob) for of in ("one", "b")]
    assert [bool(mark) for mark in marks] == [True, False, False, False]
    change_mark(redis_client, settings, ann, "one")
    assert mark_of(redis_client, settings, ann, "one") != marks[0]
    (key,) = redis_client.scan_iter(f"{settings.namespace}:retracted:*")
    assert redis_client.ttl(key) > 0


def test_warm_results_are_void_before_and_after_it_is_forgotten(redis_client, patient, monkeypatch):
    """G9: a worker that dies while it forgets has voided what was warm; so has one that is done."""
    seen: list[str] = []

    def mark() -> str:
        return mark_of(redis_client, patient, scope, NAME)

    forgets = HolographicProvider.retract

    def watched(self: HolographicProvider, event_ids: Any, ctx: HookContext) -> None:
        seen.append(mark())
        forgets(self, event_ids, ctx)

    monkeypatch.setattr(HolographicProvider, "retract", watched)
    with thread_worker(patient, (NAME,)), MemoryBus.connect(patient) as bus:
        session = bus.session("s", warm=False)
        scope = session.scope
        after = session.undo(session.turn_completed(PIN, "Noted."))
        wait_until(
            lambda: seen and mark() not in ("", seen[-1]), "both marks were made", WAIT_SECONDS
        )
        assert seen[0] != "", "before it was forgotten"
        after.switched_to("s")  # a switch that takes nothing back
        assert bus.flush("logged", WAIT_SECONDS)
        wait_applied(redis_client, patient, NAME, WAIT_SECONDS)
        assert len(seen) == 1


def test_without_redis_nothing_is_forgotten_half(settings, tmp_path, monkeypatch):
    """G4: where warm results cannot be voided the event is tried again, and nothing is parked."""

    def away(*_: Any) -> None:
        raise redis.ConnectionError("gone")

    monkeypatch.setattr(answers.retractions, "change_mark_now", away)
    ctx: Any = type("Context", (), {"scope": Scope()})()
    with pytest.raises(Unavailable, match="gone"):
        answers.forget_warm_results(instance_context(settings, NAME), ctx)


def test_an_older_release_s_switch_takes_nothing_back():
    """A rewind without ids, as older releases wrote it, is one that takes nothing back."""
    assert SessionSwitched(new_id="s", rewound=True).retracted == ()
