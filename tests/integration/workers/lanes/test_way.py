"""An event's way through a worker is the one that docs/architecture.md tells, step by step."""

import sys
import threading
from collections.abc import Mapping
from types import FrameType
from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.providers import recording
from helpers.stories.scenario import recorded, say, thread_worker
from memorybus.agent.client import MemoryBus
from memorybus.redis import scripts
from memorybus_workers.apply import serial
from memorybus_workers.lanes.news import Inbox

RUNNER = ("Runner._run", "Runner._serve", "Runner._run_lanes", "LaneSet.step", "LaneSet._give_turn")
SERIAL = (*RUNNER, "SerialApplier.work")
BATCH = (*SERIAL, "SerialApplier.apply")
WAYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Keyed": (
        (*BATCH, "SerialApplier._apply_chunk", "SerialApplier._call_quickly"),
        (*SERIAL, "Lane.commit"),
    ),
    "Transactional": (
        (
            *BATCH,
            "TransactionalApplier._apply_chunk",
            "TransactionalApplier._apply_all",
            "Applier._call",
        ),
        (*SERIAL, "Lane.commit"),
    ),
    "KeyedSide": (
        ("Pool._run", "ParallelApplier._run", "ParallelApplier._run_one"),
        (*RUNNER, "ParallelApplier.work", "Lane.commit"),
    ),
}
"""By kind of provider: the calls around its hook, and those around the commit."""


def callers(frame: FrameType | None) -> tuple[str, ...]:
    """Return the worker's functions below a frame, the first one called first."""
    found = list[str]()
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("memorybus_workers."):
            found.insert(0, frame.f_code.co_qualname)
        frame = frame.f_back
    return tuple(found)


@pytest.mark.usefixtures("redis_client")
@pytest.mark.parametrize("kind", WAYS)
def test_the_way_is_as_the_page_tells(kind, make_settings, monkeypatch):
    """A runner gives a lane its turn, the applier calls the hook, the lane commits: no detours."""
    ways: dict[str, tuple[str, ...]] = {}
    made: Any = getattr(recording, kind)
    hook, run = made.sync_turn, scripts.run

    def called(self: Any, event: Any, ctx: Any) -> Any:
        ways.setdefault("hook", callers(sys._getframe(1)))
        return hook(self, event, ctx)

    def sent(redis: Any, call: scripts.ScriptCall[Any]) -> Any:
        if call.script.name == "commit" and "hook" in ways:
            ways.setdefault("commit", callers(sys._getframe(1)))
        return run(redis, call)

    monkeypatch.setattr(made, "sync_turn", called)
    monkeypatch.setattr(scripts, "run", sent)
    monkeypatch.setattr(serial, "COMMIT_EVERY", 60.0)  # a slow batch commits in between, too
    settings = make_settings(**recorded(kind))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "one")
        wait_until(lambda: "commit" in ways, "the event is committed")
    assert (ways["hook"], ways["commit"]) == WAYS[kind]


@pytest.mark.usefixtures("redis_client")
def test_a_new_entry_wakes_the_runner_by_one_step(make_settings, monkeypatch):
    """The tail announces news, and the runner's inbox has them: nobody stands in between."""
    ways = list[tuple[str, ...]]()
    put = Inbox.put

    def noted(self: Inbox, partitions: Any = ()) -> None:
        if threading.current_thread().name == "memorybus-tail":
            ways.append(callers(sys._getframe(1)))
        put(self, partitions)

    monkeypatch.setattr(Inbox, "put", noted)
    settings = make_settings(**recorded("Keyed"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):

        def seen() -> bool:
            say(bus, "s", "one")  # again: what comes before the tail's first look, `_watch` tells
            return any("Tail._follow" in way for way in ways)

        wait_until(seen, "the tail saw an entry")
    assert ("Tail._run", "Tail._watch", "Tail._follow", "News.announce") in ways
