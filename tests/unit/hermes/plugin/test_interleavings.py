"""Any interleaving of two agents' hooks, as Hermes delivers them: everything in its own session."""

from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import hypothesis.strategies as st
import pytest
from helpers.hermes.hermes_plugin import Host, hermes_host, talk
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from memorybus.events import (
    Delegated,
    MemoryWritten,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
    TurnStarted,
)
from memorybus.lineage.graph import fold
from memorybus_hermes.plugin.provider import HermesMemory

AGENTS = st.sampled_from([0, 1])


class Agent:
    """What Hermes does with one memory provider: a true session, and a queue that lags behind."""

    def __init__(self, host: Host, number: int, *, isolated: bool) -> None:
        self.host = host
        self.isolated = isolated
        self.user = f"user{number}"
        self.memory: HermesMemory = host.instance("s0", user_id=self.user)
        self.session = "s0"
        self.made = 0
        self.said = 0
        self.transcript: list[str] = []
        self.stored: dict[str, list[str]] = {}
        self.queue: deque[tuple[object, ...]] = deque()
        self.started: Counter[tuple[str, str]] = Counter()
        self.expected: Counter[tuple[str, str]] = Counter()
        self.ends: set[tuple[str, int]] = set()  # the same end twice is one event
        self.epochs: Counter[str] = Counter()
        self.own: dict[str, list[str]] = {}  # what was said in a session and not undone
        self.undone: set[str] = set()

    def fresh(self) -> str:
        """Return a new session's id."""
        self.made += 1
        return f"s{self.made}"

    def go(self, session: str, transcript: list[str]) -> None:
        """Move to another session, as AIAgent.session_id does at once."""
        self.stored[self.session] = self.transcript
        self.session, self.transcript = session, transcript

    def turn(self, *, write: bool) -> None:
        """Have a turn; its sync waits in the queue."""
        self.said += 1
        text = f"{self.user} says {self.said}"
        self.memory.system_prompt_block()
        self.start(text)
        if write:
            told = {"session_id": self.session, "tool_call_id": f"{self.user}-{self.said}"}
            self.memory.on_memory_write("add", "memory", text, told)
            self.memory.on_delegation(text, "done", child_session_id=f"{self.user}-{self.said}")
            self.expected[self.session, f"write {text}"] += 1
            self.expected[self.session, f"task {text}"] += 1
        self.transcript = [*self.transcript, text]
        self.own.setdefault(self.session, []).append(text)
        self.expected[self.session, text] += 1
        self.queue.append(("sync", text, self.session, talk(*self.transcript)))

    def start(self, text: str) -> None:
        """Start a turn; only one of a thread's hint and the recall names its session."""
        self.started[self.session, text] += 1
        self.host.hint = None if self.isolated else self.session
        self.memory.on_turn_start(len(self.transcript), text)
        self.memory.prefetch(text, session_id=self.session if self.isolated else "")

    def drain(self) -> None:
        """Deliver the oldest of what waits."""
        if self.queue:
            name, *words = self.queue.popleft()
            getattr(self, f"deliver_{name}")(*words)

    def deliver_sync(self, text: str, session: str, messages: list[dict[str, object]]) -> None:
        """Deliver a completed turn, as Hermes does on its own thread."""
        self.memory.sync_turn(text, text.upper(), session_id=session, messages=messages)
        self.memory.queue_prefetch(text, session_id=session)

    def deliver_boundary(self, old: str, new: str, count: int) -> None:
        """Deliver an end and the switch behind it."""
        self.memory.on_session_end(talk(*["x"] * count))
        self.memory.on_session_switch(new, parent_session_id=old, reset=True, reason="new_session")


class Interleavings(RuleBasedStateMachine):
    """Two agents of two persons in one process.

    Attributes:
        isolated: whether it is a plugin host, as Hermes has one since 0.22.
    """

    isolated = False

    @initialize()
    def begin(self) -> None:
        """Start the host and both agents."""
        self.context = hermes_host(compress_wait=0.001, prefetch_deadline=0.0)
        self.host = self.context.__enter__()
        self.delivering = ThreadPoolExecutor(1)
        self.agents = [Agent(self.host, number, isolated=self.isolated) for number in (0, 1)]

    @rule(which=AGENTS, write=st.booleans())
    def turn(self, which: int, write: bool) -> None:
        """A turn, with a memory write and a delegation or without."""
        self.agents[which].turn(write=write)

    @rule(which=AGENTS)
    def drain(self, which: int) -> None:
        """One queued hook is delivered, on the queue's thread."""
        self.delivering.submit(self.agents[which].drain).result()

    @rule(which=AGENTS)
    def new(self, which: int) -> None:
        """/new: the agent is in the new session at once; with history its switch waits."""
        agent = self.agents[which]
        old, new, count = agent.session, agent.fresh(), len(agent.transcript)
        agent.go(new, [])
        if count:
            agent.ends.add((old, 2 * count))
            agent.queue.append(("boundary", old, new, count))
        else:
            agent.memory.on_session_switch(
                new, parent_session_id=old, reset=True, reason="new_session"
            )

    @rule(which=AGENTS)
    def branch(self, which: int) -> None:
        """/branch: inline, with the history."""
        agent = self.agents[which]
        old, new = agent.session, agent.fresh()
        agent.go(new, agent.transcript)
        agent.memory.on_session_switch(new, parent_session_id=old, reset=False, reason="branch")

    @rule(which=AGENTS, back=st.integers(0, 9))
    def resume(self, which: int, back: int) -> None:
        """/resume: inline, to a session that was left."""
        agent = self.agents[which]
        left = [session for session in agent.stored if session != agent.session]
        if left:
            old, new = agent.session, left[back % len(left)]
            agent.go(new, agent.stored[new])
            agent.memory.on_session_switch(new, parent_session_id=old, reset=False, reason="resume")

    @rule(which=AGENTS)
    def undo(self, which: int) -> None:
        """/undo: the last turn goes; Hermes names no parent, nor is there a state.db to ask."""
        agent = self.agents[which]
        if not agent.transcript:
            return
        agent.transcript = agent.transcript[:-1]
        if own := agent.own.get(agent.session):
            text = own.pop()
            agent.undone.add(text)
            if any(name == "sync" and words[0] == text for name, *words in agent.queue):
                agent.expected[agent.session, text] -= 1  # its end comes too late
        agent.epochs[agent.session] += 1
        agent.memory.on_session_switch(
            agent.session, parent_session_id="", reset=False, rewound=True
        )

    @rule(which=AGENTS, how=st.sampled_from(["done", "aborted", "refused"]))
    def compress(self, which: int, how: str) -> None:
        """A compression in place, or one that comes to nothing, before its end or after it."""
        agent = self.agents[which]
        window = talk("summary", *agent.transcript)
        agent.start("")
        agent.own.setdefault(agent.session, []).append("")  # that turn says nothing
        agent.memory.on_pre_compress(window)
        if how == "refused" and agent.transcript and not self.isolated:  # 0.22 ends none then
            agent.memory.on_session_end(window)
        if how != "done":
            return
        agent.transcript = agent.transcript[-1:]
        agent.epochs[agent.session] += 1
        self.inline(agent.memory.on_session_end, window)
        agent.memory.on_session_switch(
            agent.session, parent_session_id=agent.session, reset=False, reason="compression"
        )

    def inline(self, hook: Callable[..., object], *words: object) -> None:
        """Call a hook on the agent's thread; in a plugin host, each call has one of its own."""
        if self.isolated:
            self.delivering.submit(hook, *words).result()
        else:
            hook(*words)

    @rule(which=AGENTS)
    def evict(self, which: int) -> None:
        """A gateway makes another instance of the session without a word; its queue is empty."""
        agent = self.agents[which]
        if not agent.queue:
            agent.memory = self.host.instance(agent.session, user_id=agent.user)

    def teardown(self) -> None:
        """Deliver what waits, then look where everything went."""
        for agent in self.agents:
            while agent.queue:
                self.delivering.submit(agent.drain).result()
        try:
            for agent in self.agents:
                self.check(agent)
            assert self.host.shared.problems.count == 0
        finally:
            self.delivering.shutdown()
            self.context.__exit__(None, None, None)

    def check(self, agent: Agent) -> None:
        """Every event once, in its session; one root, right epochs, and no circle."""
        mine = [e for e in self.host.events() if e.scope.user == agent.user]
        found: Counter[tuple[str, str]] = Counter()
        for envelope in mine:
            event = envelope.event
            if isinstance(event, TurnCompleted):
                found[envelope.session.id, event.user] += 1
            elif isinstance(event, MemoryWritten):
                found[envelope.session.id, f"write {event.content}"] += 1
            elif isinstance(event, Delegated):
                found[envelope.session.id, f"task {event.task}"] += 1
        assert found == agent.expected
        begun = [e for e in self.host.bus.accepted.values() if e.scope.user == agent.user]
        turns = [(e.session.id, e.event.message) for e in begun if isinstance(e.event, TurnStarted)]
        assert Counter(turns) == agent.started
        taken_back = {
            one
            for envelope in mine
            if isinstance(envelope.event, SessionSwitched)
            for one in envelope.event.retracted
        }
        for envelope in mine:
            event = envelope.event
            if isinstance(event, TurnCompleted | Delegated):
                text = event.user if isinstance(event, TurnCompleted) else event.task
                assert (envelope.id in taken_back) == (text in agent.undone), text
        ends = {
            (e.session.id, e.event.message_count) for e in mine if isinstance(e.event, SessionEnded)
        }
        assert ends == agent.ends
        for session in {e.session.id for e in mine}:
            refs = [e.session for e in mine if e.session.id == session]
            assert len({ref.root for ref in refs}) == 1
            assert max(ref.epoch for ref in refs) == agent.epochs[session]
        firsts = Counter(e.session.id for e in mine if isinstance(e.event, SessionStarted))
        assert all(count == 1 for count in firsts.values())
        graph = fold([e for e in mine if isinstance(e.event, SessionStarted | SessionSwitched)])
        assert {node.identity for _, node in graph.walk()} == set(graph.nodes)


class IsolatedInterleavings(Interleavings):
    """The same in a plugin host."""

    isolated = True


_SETTINGS = settings(
    max_examples=40, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)
Interleavings.TestCase.settings = IsolatedInterleavings.TestCase.settings = _SETTINGS


@pytest.mark.slow(reason="generates interleavings of whole sessions")
class TestInterleavings(Interleavings.TestCase):
    """Any interleaving: each turn, write and end once, under its person and session."""


@pytest.mark.slow(reason="generates interleavings of whole sessions")
class TestIsolatedInterleavings(IsolatedInterleavings.TestCase):
    """Any interleaving in a plugin host, where no thread names its session."""
