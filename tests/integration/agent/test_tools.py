"""A model's tools through real workers: written once and answered, read beside the lanes."""

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.stalls import MARGIN
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.providers.tooling import schema
from helpers.redis.log import logged, reply_keys
from helpers.stories.replaying import replay
from helpers.stories.scenario import (
    NAME,
    home,
    neighbour_sessions,
    thread_worker,
    wait_applied,
    worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.events import ToolCalled
from memorybus.jobs.tools import JOB
from memorybus.recall.queue import rq_queue
from memorybus.redis.connect import connect_jobs
from memorybus.redis.keys import Keys
from memorybus.registry import tools, tools_note

WAIT_SECONDS = 30.0
"""Seconds that no test waits unless something is broken."""


STOPPED = 6.0
"""Seconds after which a reading tool that hangs is stopped."""


def tooled(kind: str, **options: Any) -> dict[str, Any]:
    """Return the settings of one provider with tools, named `NAME`."""
    return {
        "providers": (NAME,),
        "provider": {NAME: {"kind": f"helpers.providers.tooling:{kind}", **options}},
        "recall_timeout": STOPPED,
        # A reader gets what was said before, however slow the machine.
        "recall_wait": 4 * WAIT_SECONDS,
    }


Make = Callable[..., Settings]


@pytest.fixture(name="make")
def _make(redis_url: str, make_settings: MakeSettings) -> Make:
    """Make settings on the shared server with one provider of a kind."""

    def make(kind: str, **overrides: Any) -> Settings:
        return make_settings(url=redis_url, **(tooled(kind) | overrides))

    return make


@pytest.fixture(name="settings")
def _settings(make: Make) -> Settings:
    return make("Noting")


@pytest.fixture(name="bus")
def _bus(settings: Settings) -> Iterator[MemoryBus]:
    with MemoryBus.connect(settings) as bus:
        yield bus


def known(bus: MemoryBus) -> Session:
    """Return a session once the tools are known on this host."""
    wait_until(
        lambda: bus.tools().named("note_add"), "the tools are noted on this host", WAIT_SECONDS
    )
    return bus.session("s", warm=False)


# -- what is offered ------------------------------------------------------------------------------


def test_nothing_is_offered_until_a_worker_was_seen(settings, bus):
    """Without a note of this host there are no tools, and asking takes no time (G9)."""
    assert bus.tools().schemas() == []
    assert bus.session("s", warm=False).call_tool("note_add", {"text": "x"}) == {
        "ok": False,
        "error": "memory has no tool 'note_add'",
    }
    with thread_worker(settings):
        known(bus)
    assert [one["name"] for one in bus.tools().schemas()] == ["note_add", "note_find"]


def test_an_agent_elsewhere_notes_the_tools_in_the_background(settings, make):
    """An agent whose host has no worker learns the tools from the roster, on its flusher."""
    with thread_worker(settings):
        elsewhere = make("Noting", data_dir=settings.data_dir / "elsewhere")
        with MemoryBus.connect(elsewhere) as bus:
            known(bus)


def test_schemas_that_are_too_large_are_not_registered(make, redis_client, caplog):
    """G10: the provider works without its tools, and the log says why."""
    settings = make("Wordy")
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("u", "a")
        assert bus.flush("logged", WAIT_SECONDS)
        wait_applied(redis_client, settings)
        wait_until(settings.tools_path.exists, "the tools are noted")
        assert bus.tools().schemas() == []
    assert "is registered without its tools: its schemas have 70" in caplog.text


# -- tools that write -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Noting", "NotingSide", "NotingOnce"])
def test_a_writing_tool_is_applied_and_answered(kind, make, redis_client):
    """The call is an event; who calls gets the tool's own result, with every kind of applier."""
    settings = make(kind)
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        session = known(bus)
        result = session.call_tool("note_add", {"text": "walnut"}, timeout=WAIT_SECONDS)
        assert result == {"ok": True, "noted": "walnut"}
    assert texts(home(settings)) == ["walnut"]
    assert all(redis_client.ttl(key) > 0 for key in reply_keys(redis_client, settings))


def test_replies_of_one_batch_are_all_given(make):
    """A transaction of several calls loses no reply: each asker gets its own."""
    settings = make("NotingOnce")
    answers: list[dict[str, Any]] = []
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        known(bus)
        names = neighbour_sessions(settings, 8)
        bus.session(names[0], warm=False).turn_completed("!takes=0.7", "the calls gather meanwhile")
        assert bus.flush("logged", WAIT_SECONDS)
        askers = [_thread(lambda n=name: answers.append(_add(bus, n, n))) for name in names]
        for asker in askers:
            asker.join(WAIT_SECONDS)
    assert sorted(answer["noted"] for answer in answers) == sorted(names)


def test_a_transaction_that_fails_answers_nobody_before_it_is_known(make):
    """Of a batch that is rolled back nobody is told a word; each then goes alone (G4)."""
    options = {"kind": "helpers.providers.tooling:NotingOnce", "refuse_at_commit": "bad"}
    settings = make("NotingOnce", provider={NAME: options})
    answers: dict[str, dict[str, Any]] = {}
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        known(bus)
        names = neighbour_sessions(settings, 3)
        bus.session(names[0], warm=False).turn_completed("!takes=0.7", "the calls gather meanwhile")
        assert bus.flush("logged", WAIT_SECONDS)
        texts_by = dict(zip(names, ("good", "bad", "fine"), strict=True))
        askers = [
            _thread(lambda n=n, t=t: answers.update({t: _add(bus, n, t)}))
            for n, t in texts_by.items()
        ]
        for asker in askers:
            asker.join(WAIT_SECONDS)
    assert answers["good"] == {"ok": True, "noted": "good"}
    assert answers["fine"] == {"ok": True, "noted": "fine"}
    assert "the store refuses 'bad'" in answers["bad"]["error"]


def test_a_worker_killed_before_its_reply_has_applied_once(spawn, make):
    """G4: kill -9 between effect and reply; the next owner finds it done, and answers."""
    settings = make("Noting")
    dying = make("Noting", crash_at="lane.before_reply")
    with MemoryBus.connect(settings) as bus:
        child = worker(spawn, dying)
        known(bus)
        answers: list[dict[str, Any]] = []
        asker = _thread(lambda: answers.append(_add(bus, "s", "walnut")))
        wait_until(lambda: not child.alive, "the worker has died", WAIT_SECONDS)
        assert texts(home(settings)) == ["walnut"]
        with thread_worker(settings):
            asker.join(WAIT_SECONDS)
    assert answers == [{"ok": True, "noted": "walnut"}]
    assert texts(home(settings)) == ["walnut"]
    assert calls(home(settings)) == ["walnut", "walnut"], "the second owner called again"


def test_arguments_are_cleaned_as_every_event_is(settings, bus):
    """Injected recall that a model repeats is not remembered again; what is no JSON is told."""
    fenced = "a<memory-context>\nrecalled\n</memory-context>b\x00"
    with thread_worker(settings):
        session = known(bus)
        noted = session.call_tool(
            "note_add", {"text": fenced, "_x": [(fenced,)]}, timeout=WAIT_SECONDS
        )
        refused = session.call_tool("note_add", {"text": object()}, timeout=WAIT_SECONDS)
        deep: Any = []
        for _ in range(5_000):
            deep = [deep]
        too_deep = session.call_tool("note_add", {"text": deep}, timeout=WAIT_SECONDS)
    assert noted == {"ok": True, "noted": "ab\ufffd"}
    assert "no JSON object" in refused["error"]
    assert "no JSON object" in too_deep["error"]
    assert texts(home(settings)) == ["ab\ufffd"]


def test_a_refused_call_is_answered_with_its_error(settings, bus):
    """G6: who waits is told at once that it is parked, and so is who waits behind it."""
    with thread_worker(settings):
        session = known(bus)
        refused = session.call_tool("note_add", {"text": "!permanent"}, timeout=WAIT_SECONDS)
        behind = session.call_tool("note_add", {"text": "later"}, timeout=WAIT_SECONDS)
    assert refused["ok"] is behind["ok"] is False
    assert "told to raise Permanent" in refused["error"]
    assert "waits behind" in behind["error"]
    assert refused["recorded"]


def test_without_an_answer_the_call_is_recorded(settings, bus, redis_client):
    """A tool that takes too long, or that nobody serves now, is applied later, and says so."""
    wait = settings.data_dir / "wait"
    with thread_worker(settings):
        session = known(bus)
        wait.touch()
        slow = session.call_tool("note_add", {"text": f"!hang={wait}"}, timeout=0.2)
        wait.unlink()
        wait_applied(redis_client, settings)
    unserved = session.call_tool("note_add", {"text": "after"}, timeout=WAIT_SECONDS)
    assert slow.get("recorded"), slow
    assert "no answer within 0.2 s; the call is recorded" in slow["error"]
    assert "no live worker serves rec; start one" in unserved["error"]
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    assert texts(home(settings)) == [f"!hang={wait}", "after"]


def test_a_replay_repeats_writing_tools_and_answers_nobody(settings, bus, redis_client):
    """G8: a fresh instance gets the calls of the one it stands for; no reply is written again."""
    with thread_worker(settings):
        session = known(bus)
        for text in ("one", "two"):
            assert session.call_tool("note_add", {"text": text}, timeout=WAIT_SECONDS)["ok"]
        assert session.contributions([{"role": "user", "content": "three"}], timeout=WAIT_SECONDS)
        wait_applied(redis_client, settings)
    redis_client.delete(*reply_keys(redis_client, settings))

    replay(settings, "fresh")

    assert texts(home(settings, "fresh")) == ["one", "two", "three"]
    assert reply_keys(redis_client, settings) == []


def test_who_asked_long_ago_is_not_answered(settings, bus, redis_client):
    """An event that has waited in the log for longer than replies live writes none."""
    session = _noted(bus, settings)
    session.call_tool("note_add", {"text": "old"}, timeout=0.05)
    assert bus.flush("logged", WAIT_SECONDS)
    _age_log(redis_client, settings, seconds=70)
    with thread_worker(settings):
        wait_applied(redis_client, settings)
        wait_until(lambda: texts(home(settings)) == ["old"], "it is applied")
    assert reply_keys(redis_client, settings) == []


# -- tools that only read -------------------------------------------------------------------------


def test_a_reading_tool_sees_what_its_session_said(spawn, settings, bus, redis_client):
    """It runs beside the lanes in another process, after the session's own events (G3)."""
    child = worker(spawn, settings, jobs=1)
    session = known(bus)
    for number in range(5):
        session.turn_completed(f"walnut {number}", "ok")
        result = session.call_tool("note_find", {"text": "walnut"}, timeout=WAIT_SECONDS)
        assert result["ok"], result
        assert len(result["found"]) == number + 1
    assert result["in"] not in (child.pid, os.getpid())
    assert not [one for one in logged(settings) if isinstance(one.envelope.event, ToolCalled)]


def test_a_reading_tool_that_fails_or_says_too_much_is_told(spawn, settings, bus):
    """Its error reaches the model, its result is whole or refused, and the next call works."""
    worker(spawn, settings, jobs=1)
    session = known(bus)
    failed = session.call_tool("note_find", {"text": "!value"}, timeout=WAIT_SECONDS)
    much = session.call_tool("note_find", {"text": "!much"}, timeout=WAIT_SECONDS)
    missing = session.call_tool("note_find", {}, timeout=WAIT_SECONDS)
    assert "told to raise ValueError" in failed["error"]
    assert "larger than `reply_max_bytes`" in much["error"]
    assert "KeyError" in missing["error"]
    assert session.call_tool("note_find", {"text": "x"}, timeout=WAIT_SECONDS)["ok"]


def test_a_reading_tool_has_a_deadline(spawn, settings, bus, witness):
    """G9: a tool that hangs costs its caller the deadline; then it is stopped and told."""
    worker(spawn, settings, jobs=1)
    session = known(bus)
    session.call_tool("note_find", {"text": "x"}, timeout=WAIT_SECONDS)
    hung, took = witness.timed(
        lambda: session.call_tool("note_find", {"text": "!hang"}, timeout=0.5)
    )
    assert took < 0.5 + MARGIN
    assert hung == {"ok": False, "error": f"{NAME} gave no answer within 0.5 s"}
    assert session.call_tool("note_find", {"text": "x"}, timeout=WAIT_SECONDS)["ok"], (
        "it was stopped"
    )


def test_a_killed_reading_process_is_a_clear_error(spawn, settings, bus):
    """G9: kill -9 in the middle of a reading tool leaves the caller with an error in time."""
    worker(spawn, settings, jobs=1)
    session = known(bus)
    pid = session.call_tool("note_find", {"text": "x"}, timeout=WAIT_SECONDS)["in"]
    answers: list[dict[str, Any]] = []
    begun = settings.data_dir / "begun"
    asker = _thread(
        lambda: answers.append(
            session.call_tool("note_find", {"text": f"!meet={begun}"}, timeout=5.0)
        )
    )
    wait_until(begun.exists, "the tool runs", WAIT_SECONDS)
    reader = psutil.Process(pid)
    reader.kill()
    reader.wait(WAIT_SECONDS)
    begun.unlink()  # the call is carried out again: it finds nobody to meet, and hangs too
    asker.join(WAIT_SECONDS)
    assert answers == [{"ok": False, "error": f"{NAME} gave no answer within 5 s"}]


def test_nobody_who_serves_a_reading_tool_is_told_at_once(settings, bus):
    """G9: without recall processes nothing is waited for; the error says what to start."""
    with thread_worker(settings):
        session = known(bus)
        begun = SYSTEM.monotonic()
        result = session.call_tool("note_find", {"text": "x"}, timeout=WAIT_SECONDS)
    assert SYSTEM.monotonic() - begun < WAIT_SECONDS / 2
    assert "memorybus up" in result["error"]


def test_a_job_can_run_no_writing_tool(spawn, settings, bus, redis_client):
    """Who can write to Redis can have read what any agent may read, and nothing written."""
    worker(spawn, settings, jobs=1)
    session = known(bus)
    tools_note.write_note(
        settings.tools_path,
        {
            NAME: tools.DeclaredTools(
                tools_note.read_note(settings.tools_path)[NAME].schemas, ("note_add", "note_find")
            )
        },
        "forged",
    )
    forged = session.call_tool("note_add", {"text": "x"}, timeout=WAIT_SECONDS)
    queue = rq_queue(connect_jobs(settings), settings, NAME)
    for body in ("", "{}", '{"id": "../x", "partition": 0}', 7):
        queue.enqueue(JOB, body, result_ttl=0, failure_ttl=60)
    assert "'note_add' is no tool that only reads" in forged["error"]
    assert session.call_tool("note_find", {"text": "x"}, timeout=WAIT_SECONDS)["found"] == []
    assert calls(home(settings)) == []


# -- without Redis --------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["down", "frozen"])
def test_without_redis_a_call_takes_no_longer_than_told(state, make_redis, make_settings, witness):
    """G9: dead or hanging, Redis costs the deadline at most; a writing call stands in the spool."""
    server = make_redis()
    settings = make_settings(url=server.url, **tooled("Noting"))
    with MemoryBus.connect(settings) as bus:
        with thread_worker(settings):
            session = known(bus)
        (server.kill if state == "down" else server.freeze)()
        for name in ("note_add", "note_find"):
            result, took = witness.timed(
                lambda name=name: session.call_tool(name, {"text": "x"}, timeout=1.0)
            )
            assert took < 1.0 + MARGIN
            assert result["ok"] is False
            assert result.get("recorded", False) is (name == "note_add")
        assert bus.unsent >= 1


# -- the tools of these tests ---------------------------------------------------------------------


def _add(bus: MemoryBus, session: str, text: str) -> dict[str, Any]:
    return bus.session(session, warm=False).call_tool(
        "note_add", {"text": text}, timeout=WAIT_SECONDS
    )


def _thread(run: Any) -> Any:
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def _noted(bus: MemoryBus, settings: Settings) -> Session:
    """Return a session whose host knows the tools, without a worker."""
    declared = tools.DeclaredTools((schema("note_add"), schema("note_find")), ("note_find",))
    tools_note.write_note(settings.tools_path, {NAME: declared}, "test")
    return bus.session("s", warm=False)


def _age_log(client: redis.Redis, settings: Settings, seconds: int) -> None:
    """Write the log anew with entries so much older, as if time had passed."""
    keys = Keys(settings.namespace)
    for partition in range(settings.partitions):
        log = keys.log(partition)
        entries: Any = client.xrange(log)
        client.delete(log)
        for entry, fields in entries:
            ms, _, seq = entry.decode().partition("-")
            client.xadd(log, fields, id=f"{int(ms) - seconds * 1000}-{seq}")
