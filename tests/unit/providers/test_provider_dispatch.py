"""From an event to its hook."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from memorybus.errors import Permanent
from memorybus.events import (
    EVENT_TYPES,
    CanarySent,
    ContextCompressing,
    DeadLetterResolved,
    Delegated,
    Event,
    MemoryWritten,
    OperatorActed,
    Position,
    Recalled,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    ToolCalled,
    TurnCompleted,
    TurnStarted,
    UnknownEvent,
)
from memorybus_providers.base import Capabilities, HookContext, MemoryProvider, ProviderConfig
from memorybus_providers.dispatch import HOOKS, bind

CTX = HookContext(Scope(), SessionRef(id="s", root="s"), "0" * 32, Position(0, "1-1", 1), 1, 5.0)
EVENTS: list[tuple[Event, str]] = [
    (SessionStarted(), "initialize"),
    (TurnStarted(), "on_turn_start"),
    (TurnCompleted(), "sync_turn"),
    (MemoryWritten(action="add", content="x"), "on_memory_write"),
    (SessionSwitched(new_id="t"), "on_session_switch"),
    (ContextCompressing(), "on_pre_compress"),
    (Delegated(), "on_delegation"),
    (SessionEnded(), "on_session_end"),
]
UNKNOWN = UnknownEvent(name="DreamDreamt", wire_version=3, raw=b"")


class Recorder(MemoryProvider):
    """Notes which hook was called with what."""

    kind = "recorder"
    capabilities = Capabilities(handles=frozenset(EVENT_TYPES), tools=True)

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self.calls: list[tuple[Any, ...]] = []
        for name in HOOKS.values():
            setattr(self, name, self._noting(name))

    def _noting(self, name: str) -> Any:
        def hook(event: Event, ctx: HookContext) -> str | None:
            self.calls.append((name, event, ctx))
            return "keep this" if name == "on_pre_compress" else None

        return hook

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        self.calls.append((tool, arguments, ctx))
        return {"found": ["é"]}


class Picky(Recorder):
    """Handles turns only."""

    capabilities = Capabilities(handles=frozenset({TurnCompleted}))


def make(cls: type[Recorder], tmp_path: Path) -> Recorder:
    """Return an instance named ``mine``."""
    return cls(ProviderConfig(name="mine", home=tmp_path))


@pytest.mark.parametrize(("event", "hook"), EVENTS)
def test_an_event_reaches_its_hook(event, hook, tmp_path):
    """Each event goes to the hook of its name, with event and context."""
    provider = make(Recorder, tmp_path)

    reply = bind(provider)(event, CTX)

    assert provider.calls == [(hook, event, CTX)]
    assert reply == ("keep this" if hook == "on_pre_compress" else None)


def test_every_event_has_a_hook():
    """No event of the wire contract is without a place to go; the log's own records need none."""
    assert {*HOOKS, ToolCalled, DeadLetterResolved, CanarySent, OperatorActed, Recalled} == set(
        EVENT_TYPES
    )


def test_what_is_not_handled_is_applied_without_a_call(tmp_path):
    """Undeclared events answer None, and `handles` says so beforehand."""
    provider = make(Picky, tmp_path)
    apply = bind(provider)

    replies = [apply(event, CTX) for event, _ in EVENTS]

    assert replies == [None] * len(EVENTS)
    assert [name for name, *_ in provider.calls] == ["sync_turn"]
    assert [kind for kind in EVENT_TYPES if apply.handles(kind)] == [TurnCompleted]


@pytest.mark.parametrize("cls", [Recorder, Picky])
def test_an_unknown_event_is_refused_for_good(cls, tmp_path):
    """What this release does not know is parked, never dropped, whoever would handle it (G6)."""
    apply = bind(make(cls, tmp_path))

    assert apply.handles(UnknownEvent)
    with pytest.raises(Permanent, match="DreamDreamt of version 3"):
        apply(UNKNOWN, CTX)


@pytest.mark.parametrize(("addressee", "called"), [("mine", 1), ("recorder", 0), ("other", 0)])
def test_a_tool_call_reaches_the_provider_it_names(addressee, called, tmp_path):
    """By instance name, as two may be of one kind; to others it is applied without a call."""
    provider = make(Recorder, tmp_path)
    event = ToolCalled(provider=addressee, tool="find", arguments={"q": 1})

    reply = bind(provider)(event, CTX)

    assert provider.calls == [("find", {"q": 1}, CTX)] * called
    assert reply == ('{"found":["é"]}' if called else None)


def test_an_instance_that_stands_for_another_takes_its_tool_calls(tmp_path):
    """A replay fills a new instance with the writing tools' calls of the one it stands for (G8)."""
    provider = Recorder(ProviderConfig(name="fresh", stands_for="mine", home=tmp_path))

    assert bind(provider)(ToolCalled(provider="mine", tool="find"), CTX) == '{"found":["é"]}'
    assert bind(provider)(ToolCalled(provider="fresh", tool="find"), CTX) is None


@pytest.mark.parametrize("result", [object(), {"text": "\ud800"}, {1: object()}])
def test_a_tool_result_that_is_not_json_is_permanent(result, tmp_path):
    """Garbage from a tool parks its event with the tool's name (G6)."""
    provider = make(Recorder, tmp_path)
    provider.handle_tool_call = lambda *_: result

    with pytest.raises(Permanent, match="'find' returned what is not JSON"):
        bind(provider)(ToolCalled(provider="mine", tool="find"), CTX)


@pytest.mark.parametrize("reply", [None, b"bytes", ["text"]])
def test_a_reply_that_is_not_text_is_permanent(reply, tmp_path):
    """on_pre_compress answers with text or not at all (G6)."""
    provider = make(Recorder, tmp_path)
    provider.on_pre_compress = lambda *_: reply

    with pytest.raises(Permanent, match="not text"):
        bind(provider)(ContextCompressing(), CTX)


def test_errors_of_a_hook_pass_through(tmp_path):
    """What a hook raises is the worker's to judge."""
    provider = make(Recorder, tmp_path)

    def fail(event: Event, ctx: HookContext) -> None:
        raise ZeroDivisionError

    provider.sync_turn = fail

    with pytest.raises(ZeroDivisionError):
        bind(provider)(TurnCompleted(), CTX)
