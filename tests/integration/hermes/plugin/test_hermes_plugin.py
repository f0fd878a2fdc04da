"""The plugin for Hermes on a real Redis: recall that comes warm and once, and hooks in time."""

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.hermes.hermes_plugin import NOWHERE, Host, hermes_host, talk
from helpers.processes.stalls import MARGIN, STANDSTILL
from helpers.processes.waiting import still, wait_until
from helpers.stories.scenario import recorded, thread_worker, wait_applied, worker
from memorybus.config.settings import Settings
from memorybus.events import Recalled
from memorybus.recall.shown import shown_block
from memorybus_hermes.plugin.provider import HermesMemory

ALLOWED = 10.0
"""Milliseconds of an inline hook on a busy machine of the CI: its median, and its work at p99. The
promise is 2 at p99 on an idle one; whatever waited for Redis would take 50 and more."""

GENEROUS = 100.0
"""Milliseconds by the wall clock at p99, where a busy machine shows more than we do."""

ROUNDS = 3
"""How often the hooks are timed, whatever comes out: the median counts. What a hook does it does
in each round; what the machine does beside us it does in one."""

PATIENT: Any = {"recall_wait": 20.0, "recall_timeout": 30.0, "prefetch_deadline": 5.0}
"""For what is asked once: neither recall nor Redis is given up because the machine is slow."""

ANSWER = "An answer of a usual length. " * 20


def host_of(settings: Settings, tmp_path: Path) -> Host:
    return Host(settings, tmp_path / "home")


@contextmanager
def running(settings: Settings, tmp_path: Path) -> Iterator[Host]:
    """Run a host, and close its bus at the end."""
    host = host_of(settings, tmp_path)
    try:
        yield host
    finally:
        host.bus.close(1.0)


def have_turn(memory: HermesMemory, text: str, past: list[dict[str, Any]]) -> str:
    """Have a turn as Hermes has it, and return what it injected."""
    memory.on_turn_start(len(past), text)
    recalled = memory.prefetch(text, session_id="")
    message: dict[str, Any] = {"role": "user", "content": text}
    if recalled:
        message["api_content"] = f"{text}\n\n<memory-context>\n{recalled}\n</memory-context>"
    past += [message, {"role": "assistant", "content": ANSWER}]
    memory.sync_turn(text, ANSWER, session_id="s1", messages=list(past))
    memory.queue_prefetch(text, session_id="s1")
    return recalled


def test_recall_comes_warm_once_and_again_after_a_compression(
    spawn, redis_url, make_settings, tmp_path
):
    """What a worker remembers is in the next turn, in no later one, and again in a new window."""
    settings = make_settings(
        **PATIENT, url=redis_url, providers=("holographic",), compress_wait=0.1, prefetch_wait=5.0
    )
    worker(spawn, settings, jobs=1)
    with running(settings, tmp_path) as host:
        memory = host.instance("s1")
        past: list[dict[str, Any]] = []
        memory.on_memory_write("add", "memory", "The parrot is called Admiral <b>", {})
        have_turn(memory, "The weather was fine today.", past)
        session = host.shared.session(host.events()[0].scope, "s1")

        def warm() -> bool:  # without a turn of its own: each would be remembered, too
            memory.queue_prefetch("What is the parrot called?", session_id="s1")
            return "parrot is called" in str(session.recalled_lines())

        wait_until(warm, "recall is warm", 30)
        text = have_turn(memory, "Tell me about the parrot called Admiral.", past)
        assert "Admiral" in text
        assert "<" not in text, "escaped: no tag of ours, none of a memory's"
        assert len(text) <= settings.turn_budget
        first = next(line for line in text.splitlines() if "parrot is called" in line)
        turn, record = (envelope for envelope in host.events()[-2:])
        assert isinstance(record.event, Recalled)
        assert (record.event.turn, shown_block(record.event)) == (turn.id, text)
        assert turn.id != next(iter(record.event.memories[0].events))
        assert first not in have_turn(memory, "And what else of the parrot?", past)
        memory.on_session_switch("s1", parent_session_id="s1", reason="compression")
        del past[:]

        def again() -> bool:
            memory.queue_prefetch("What is the parrot called?", session_id="s1")
            return first in memory.prefetch("parrot")

        wait_until(again, "the new window has it again", 30)
        assert host.shared.problems.count == 0


def test_a_turn_waits_a_moment_for_its_own_recall(
    spawn, redis_url, redis_client, make_settings, tmp_path
):
    """Nothing was asked ahead for a first prompt: it is asked at once, and waited for."""
    settings = make_settings(
        **PATIENT, url=redis_url, providers=("holographic",), prefetch_wait=30.0
    )
    worker(spawn, settings, jobs=1)
    with running(settings, tmp_path) as host:
        host.instance("s1").on_memory_write("add", "memory", "The parrot is called Admiral", {})
        assert host.bus.flush(timeout=25)
        wait_applied(redis_client, settings, "holographic")
        later = host.instance("s2")
        later.on_turn_start(0, "What is the parrot called?")
        assert "Admiral" in later.prefetch("What is the parrot called?")


def test_a_piece_of_what_was_said_in_the_window_is_not_recalled(
    spawn, redis_url, redis_client, make_settings, tmp_path
):
    """A turn recalls no piece of a message that Hermes sends anyway; another session does."""
    settings = make_settings(
        **PATIENT, url=redis_url, providers=("holographic",), prefetch_wait=30.0
    )
    worker(spawn, settings, jobs=1)
    said = "\n\n".join(f"The parrot of deck {n} is called Admiral {n}. " * 8 for n in range(6))
    with running(settings, tmp_path) as host:
        memory = host.instance("s1")
        memory.on_turn_start(1, said)
        memory.sync_turn(said, "I see.", session_id="s1", messages=talk(said))
        assert host.bus.flush(timeout=25)
        wait_applied(redis_client, settings, "holographic")
        prompt = "What is the parrot of deck 4 called?"
        assert "Admiral" in host.instance("s2").prefetch(prompt)
        assert memory.prefetch(prompt, session_id="s1") == ""


def test_what_one_says_in_a_shared_chat_is_recalled_to_no_other(
    spawn, redis_url, redis_client, make_settings, tmp_path
):
    """Recall of a turn is its author's: the same prompt brings each person their own."""
    settings = make_settings(
        **PATIENT, url=redis_url, providers=("holographic",), prefetch_wait=30.0
    )
    worker(spawn, settings, jobs=1)
    with running(settings, tmp_path) as host:
        said = {"ann": "My parrot is called Admiral.", "ben": "My parrot is called Bosun."}
        chat = host.instance("g1", user_id="ann", chat_type="group")
        for person, text in said.items():
            chat.on_turn_start(1, text, author_id=person)
            chat.sync_turn(
                text, "I see.", session_id="g1", messages=talk(text), turn_author={"id": person}
            )
        assert host.bus.flush(timeout=25)
        wait_applied(redis_client, settings, "holographic")
        later = host.instance("g2", user_id="ann", chat_type="group")
        for person, other, name in (("ben", "ann", "Bosun"), ("ann", "ben", "Admiral")):
            later.on_turn_start(1, "What is my parrot called?", author_id=person)
            recalled = later.prefetch("What is my parrot called?", session_id="g2")
            assert name in recalled
            assert said[other] not in recalled


def test_a_turn_does_not_wait_for_nobody(redis_url, make_settings, tmp_path):
    """G9: where no worker answers recalls, no turn waits for one."""
    settings = make_settings(url=redis_url, prefetch_wait=30.0)
    with running(settings, tmp_path) as host:
        memory = host.instance("s1")
        wait_until(lambda: host.bus.unsent == 0, "connected")
        took = []
        for prompt in ("What is the parrot called?", "And where does it live?"):
            memory.on_turn_start(len(took), prompt)
            begin = time.perf_counter()
            assert memory.prefetch(prompt) == ""
            took.append(time.perf_counter() - begin)
    assert max(took) < 15.0


def test_the_new_session_never_sees_the_old_one_s_recall(spawn, redis_url, make_settings, tmp_path):
    """The /new race: what is warm for the old session stays out of the new one's prompt."""
    settings = make_settings(url=redis_url, **recorded("Transactional"))
    worker(spawn, settings, jobs=1)
    with running(settings, tmp_path) as host:
        memory = host.instance("old")
        memory.on_turn_start(0, "hello")
        memory.sync_turn("old question about things", "an answer", session_id="old")
        memory.queue_prefetch("old question about things", session_id="old")
        old = host.shared.session(host.events()[0].scope, "old")
        wait_until(old.recalled_lines, "the old session is warm", 30)
        host.hint = "new"
        memory.on_turn_start(1, "fresh")
        assert "old question" not in memory.prefetch("fresh")


def test_tools_are_called_and_answered_as_json(redis_url, make_settings, tmp_path):
    """An offered tool reaches its provider; one that nobody has is a clear error."""
    settings = make_settings(url=redis_url, providers=("holographic",), tool_wait=5.0)
    with thread_worker(settings), running(settings, tmp_path) as host:
        memory = host.instance("s1")
        schemas = wait_until(memory.get_tool_schemas, "tools are known", 30)
        names = [schema["name"] for schema in schemas]
        assert all({"name", "description", "parameters"} <= set(schema) for schema in schemas)
        assert host.instance().get_tool_schemas() == schemas
        answers = [json.loads(memory.handle_tool_call(name, {})) for name in [*names, "nobody_s"]]
        assert answers[-1]["ok"] is False
        assert "nobody_s" in answers[-1]["error"]


def queued() -> float:
    """Return the seconds that this thread has stood in line for a core; 0 where none can tell."""
    try:
        told = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text()
    except OSError:
        return 0.0
    return int(told.split()[1]) / 1e9


class Times:
    """How long the calls of each hook took, in milliseconds: by the wall clock, and of work.

    What the thread stood in line for a core is the doing of what runs beside it, and counts in
    neither.
    """

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = {}
        self.work: dict[str, list[float]] = {}

    def __call__(self, hook: Callable[..., object], *args: Any, **told: Any) -> None:
        line, begin, worked = queued(), time.perf_counter(), time.thread_time()
        hook(*args, **told)
        work, wall = time.thread_time() - worked, time.perf_counter() - begin
        wall -= queued() - line
        self.wall.setdefault(hook.__name__, []).append(wall * 1_000)
        self.work.setdefault(hook.__name__, []).append(work * 1_000)


def at(share: float, times: list[float]) -> float:
    """Return a percentile."""
    return sorted(times)[int(len(times) * share)]


def timed(host: Host, turns: int = 150) -> Times:
    """Have turns, and return how long each inline hook took."""
    memory = host.instance("s1")
    clock = Times()
    past: list[dict[str, Any]] = []
    for number in range(turns):
        text = f"what about matter {number}, and then?"
        past += talk(text)
        call = {"tool_call_id": f"c{number}", "session_id": "s1"}
        clock(memory.on_turn_start, number, text)
        clock(memory.sync_turn, text, ANSWER, session_id="s1", messages=past)
        clock(memory.queue_prefetch, text, session_id="s1")
        clock(memory.on_memory_write, "add", "memory", text, call)
        clock(memory.on_delegation, text, ANSWER)
        clock(memory.on_session_end, [{}] * number)
        clock(memory.on_session_switch, "s1", parent_session_id="s1", reason="compression")
        clock(memory.is_available)
        wait_until(still(lambda: None, 0.01), "the moment between two turns")
    return clock


def usual(rounds: list[dict[str, list[float]]], hook: str, share: float) -> float:
    """Return a percentile of a hook's times: the median of the rounds."""
    return statistics.median(at(share, times[hook]) for times in rounds)


@pytest.mark.fault
@pytest.mark.alone
@pytest.mark.parametrize("state", ["up", "down", "hanging"])
def test_inline_hooks_are_quick(state, make_redis, make_settings, tmp_path):
    """G9: an inline hook makes one local write, whether Redis is up, down or hanging."""
    server = make_redis()
    settings = make_settings(url=server.url)
    if state == "down":
        server.kill()
    with running(settings, tmp_path) as host:
        host.instance("s0").on_turn_start(0, "the first connection is made")
        if state != "down":
            wait_until(lambda: host.bus.unsent == 0, "connected")
        if state == "hanging":
            server.freeze()
        try:
            rounds = [timed(host) for _ in range(ROUNDS)]
        finally:
            if state == "hanging":
                server.thaw()
        assert host.shared.problems.count == 0
    walls, works = [one.wall for one in rounds], [one.work for one in rounds]
    for name in walls[0]:
        middle, high, work = (
            usual(walls, name, 0.5),
            usual(walls, name, 0.99),
            usual(works, name, 0.99),
        )
        told = f"{name} with Redis {state}: p50 {middle:.3f}, p99 {high:.3f}, work {work:.3f} ms"
        print(told)
        assert middle < ALLOWED, told
        assert work < ALLOWED, told
        assert high < GENEROUS, told


def test_only_the_first_turn_waits_while_redis_hangs(make_redis, make_settings, tmp_path, witness):
    """G9: once Redis has let a recall wait in vain, later turns wait no more, until it answers."""
    server = make_redis()
    waits = {"prefetch_deadline": 1.0, "prefetch_wait": 2.0}
    with running(make_settings(url=server.url, **waits), tmp_path) as host:
        memory = host.instance("s1")
        wait_until(lambda: not host.bus.warm.wants_connection, "the cache is connected")
        server.freeze()
        try:
            turns = [f"where is the ferry, {number}" for number in range(3)]
            answers = [witness.timed(partial(memory.prefetch, turn)) for turn in turns]
        finally:
            server.thaw()
        assert [text for text, _ in answers] == [""] * len(turns)
        took = [seconds for _, seconds in answers]
        assert took[0] < sum(waits.values()) + MARGIN, took
        assert max(took[1:]) < MARGIN, took
        wait_until(lambda: not host.bus.warm.wants_connection, "it reads again")


def test_nothing_listens_and_nobody_waits(witness):
    """G9: without a Redis a compression is durable at once, and waits for its deadline only."""
    with hermes_host(NOWHERE, compress_wait=0.2) as host:
        memory = host.instance("s1")
        text, took = witness.timed(lambda: memory.on_pre_compress(talk("hello")))
        assert text == ""
        assert took < 0.2 + STANDSTILL  # no witness sees how long an fsync takes
        assert len(host.events()) == 2
