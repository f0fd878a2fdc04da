"""Arguments of a wrong type: what publishes refuses them by name, and what recalls never raises."""

import inspect
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.errors import InvalidEvent
from memorybus.events import Scope, SessionRef, TurnCompleted
from memorybus.ids import text_digest
from memorybus.registry.tools import OfferedTools, Tool

ODD = (None, 42, 2.5, True, "my secret", b"my secret", ("my secret",), {"my": "secret"}, {1: 2},
       uuid.UUID(int=7), object(), [[]])  # fmt: skip
"""Values of the types that programs give by mistake."""

TURN = TurnCompleted(user="where is it", assistant="there")
PLACE = {"key": "k", "scope": Scope(), "session": SessionRef("s", "s")}
GIVEN: dict[str, dict[str, Any]] = {
    "turn_started": {"message": "hello"},
    "turn_completed": {"user": "where is it", "assistant": "there", "ordinal": 3},
    "memory_written": {"action": "add", "content": "likes tea", "tool_call_id": "c"},
    "compressing": {"messages": [{"role": "user"}]},
    "delegated": {"task": "find it", "result": "found"},
    "ended": {},
    "publish": {"event": TURN},
    "branch": {"new_id": "branch"},
    "compressed": {"new_id": "after"},
    "switched_to": {"new_id": "next"},
}
"""The methods of a session that publish, with the arguments of a right call."""

_WORDS = ("action", "store")
"""Arguments that take a word of the interface: an error shows the wrong word."""

_HOW = ("warm", "durable", "reset", "warm_from")
"""Arguments that no event carries as a session gives them: any value counts as true or false."""


@pytest.fixture(name="bus")
def _bus(tmp_path: Path) -> Iterator[MemoryBus]:
    gone = Settings(data_dir=tmp_path, url=f"unix://{tmp_path}/gone.sock")
    with MemoryBus.connect(gone) as bus:
        yield bus


def _arguments(method: Callable[..., Any]) -> list[str]:
    """Return the names of a method's arguments, also those that `TurnDetails` adds."""
    names = [name for name in inspect.signature(method).parameters if name != "self"]
    if "details" in names and method is Session.turn_completed:
        names += ["user_name", "assistant_name", "model", "tokens_in", "tokens_out", "synthetic"]
        names.remove("details")
    return [name for name in names if name not in _HOW]


def _refused(call: Callable[..., Any], given: dict[str, Any], name: str) -> int:
    """Call with odd values of one argument; return how many were refused, each by its name."""
    refusals = [_refusal(call, given | {name: odd}) for odd in ODD]
    for why in filter(None, refusals):
        assert name.removeprefix("event_") in why
        assert "secret" not in why or name in _WORDS
    return len(list(filter(None, refusals)))


def _refusal(call: Callable[..., Any], given: dict[str, Any]) -> str:
    """Return why a call is refused; "" if it is not."""
    try:
        call(**given)
    except InvalidEvent as error:
        return str(error)
    return ""


@pytest.mark.parametrize("method", GIVEN)
def test_a_session_refuses_an_odd_argument_by_its_name(bus, method):
    """G1: whatever is given, a session's method publishes it readably or raises `InvalidEvent`."""
    session = bus.session("s", warm=False)
    for name in _arguments(getattr(Session, method)):
        assert _refused(getattr(session, method), GIVEN[method], name), name


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("session", {"warm": False}),
        ("publish", {"event": TURN, "key": "k", "scope": Scope(), "session": SessionRef("s", "s")}),
        ("adopt", {"scope": Scope(), "ref": SessionRef("a", "a")}),
    ],
)
def test_a_bus_refuses_an_odd_argument_by_its_name(bus, method, given):
    """G1: whatever is given, a bus publishes it readably or raises `InvalidEvent`."""
    for name in _arguments(getattr(MemoryBus, method)):
        assert _refused(getattr(bus, method), given, name), name


def test_a_recall_of_operators_refuses_an_odd_argument_by_its_name(bus):
    """G9: a question that workers could not read is not sent."""
    for name in ("question", "agent", "user", "workspace", "budget", "as_of"):
        with pytest.raises(InvalidEvent, match=name):
            bus.recall(**({"question": "where"} | {name: object()}))


def test_whole_floats_are_integers_everywhere(bus):
    """G2: 3.0 is 3, also in ids that are derived from it; a broken float is refused."""
    session = bus.session("s", warm=False)
    for number in (3, 3.0):
        turn = session.turn_completed("hi", "ho", ordinal=number, at=float(10**12), tokens_in=5.0)
        write = session.memory_written("add", "tea", tool_call_id="c", index=number)
        end = session.ended(message_count=number)
        compression = session.compressing([], compression_count=number)
        ids = [receipt.event_id for receipt in (turn, write, end, compression)]
        assert ids == [
            session.event_id("turn", 3, "hi", "ho"),
            session.event_id("write", "c", 3),
            session.event_id("end", 3),
            session.event_id("compressing", 3, text_digest("[]")),
        ]
    with pytest.raises(InvalidEvent, match="`at` takes an integer of 64 bits, not this float"):
        session.turn_completed("hi", "ho", at=1_793_523_600_123.456)


def test_a_refused_switch_is_not_noted(bus):
    """G1: a session whose switch was refused stays where it was, also for the next process."""
    session = bus.session("s", warm=False)
    for refused in (session.undo, session.compressed, lambda at: session.branch("b", at=at)):
        with pytest.raises(InvalidEvent):
            refused(at=1_793_523_600)
    assert bus.session("s", warm=False).ref == session.ref
    assert bus.sessions.get(session.scope, "b") is None


def test_recall_breaks_no_agent(bus):
    """G9: what asks for memories takes any value; what is no text asks nothing."""
    session = bus.session("s", warm=False)
    for odd in ODD:
        session.warm_up(odd)
        session.queue_prefetch(odd, odd)
        assert session.prefetch(odd) == ""
        assert session.prefetch("where is it", wait=odd) == ""
        assert session.recalled_lines(odd) == []
        assert session.system_prompt(known=odd) == ""


def test_a_tool_call_raises_nothing(bus, monkeypatch):
    """G9: whatever a model or its host gives, the result of a tool call says what was wrong."""
    tools = [Tool("keep", "p", "keep", writes=True), Tool("find", "p", "find", writes=False)]
    offered = OfferedTools((tool, {"name": tool.offered}) for tool in tools)
    monkeypatch.setattr(bus, "tools", lambda: offered)
    session = bus.session("s", warm=False)
    for odd in ODD:
        assert session.call_tool(odd, {})["ok"] is False
        for name in ("keep", "find"):
            assert session.call_tool(name, odd, timeout=0.0)["ok"] is False
            assert session.call_tool(name, {"k": odd}, timeout=0.0)["ok"] is False
            assert session.call_tool(name, {}, timeout=0.0, event_id=odd)["ok"] is False
            if not isinstance(odd, int | float):
                assert session.call_tool(name, {}, timeout=odd)["ok"] is False
