"""The hook that takes an event: one table for each provider instance."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
from memorybus.errors import Permanent
from memorybus.events import (
    ContextCompressing,
    Delegated,
    Derived,
    Event,
    MemoryCurated,
    MemoryWritten,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    ToolCalled,
    TurnCompleted,
    TurnStarted,
    UnknownEvent,
)

from memorybus_providers.base import HookContext, MemoryProvider

HOOKS: Final[Mapping[type[Event], str]] = MappingProxyType(
    {
        SessionStarted: "initialize",
        TurnStarted: "on_turn_start",
        TurnCompleted: "sync_turn",
        MemoryWritten: "on_memory_write",
        MemoryCurated: "on_memory_curated",
        SessionSwitched: "on_session_switch",
        ContextCompressing: "on_pre_compress",
        Delegated: "on_delegation",
        SessionEnded: "on_session_end",
        Derived: "on_derived",
    }
)
"""The hook of each event. Besides, `ToolCalled` goes to ``handle_tool_call``, and the events that a
`SessionSwitched` retracts go to ``retract`` before its hook is called."""

Hook = Callable[[Any, HookContext], str | None]


class Apply:
    """Calls the hook of an event: ``apply(event, ctx)``.

    Attributes:
        handles: says whether an event type has a hook. If not, the event counts as applied, and no
            context need be built for it.
        hook_of: returns the hook of a type that has one.
    """

    __slots__ = ("_hooks", "handles", "hook_of")

    def __init__(self, hooks: dict[type[Event], Hook]) -> None:
        self._hooks = hooks
        self.handles: Callable[[type[Event]], bool] = hooks.__contains__
        self.hook_of: Callable[[type[Event]], Hook] = hooks.__getitem__

    def __call__(self, event: Event, ctx: HookContext) -> str | None:
        """Apply one event; return the text of the hook's reply, or None if it has none.

        A tool's result is returned as JSON. An event the provider does not handle returns None.

        Raises:
            Permanent: the event is an `UnknownEvent`, which is parked and never dropped (G6), or a
                reply is not text.
            Exception: whatever the hook raises.
        """
        hook = self._hooks.get(type(event))
        return None if hook is None else hook(event, ctx)


def bind(
    provider: MemoryProvider, before_retracting: Callable[[HookContext], None] | None = None
) -> Apply:
    """Return the dispatch table of an instance, built from its declared capabilities.

    Args:
        before_retracting: called before `retract` and before a tool that forgets.
    """
    capabilities = provider.capabilities
    hooks: dict[type[Event], Hook] = {
        event: getattr(provider, name)
        for event, name in HOOKS.items()
        if event in capabilities.handles
    }
    hooks[UnknownEvent] = _refuse
    if capabilities.retracts:
        switched = hooks.get(SessionSwitched)
        hooks[SessionSwitched] = _retract_hook(provider, switched, before_retracting)
    if ContextCompressing in hooks:
        hooks[ContextCompressing] = _text_reply(hooks[ContextCompressing])
    if capabilities.tools or ToolCalled in capabilities.handles:
        hooks[ToolCalled] = _tool_call(provider, before_retracting)
    return Apply(hooks)


def _refuse(event: UnknownEvent, ctx: HookContext) -> str | None:
    if event.wire_version == 0:
        raise Permanent(f"an entry that memorybus did not write, or damaged ({event.name})")
    raise Permanent(
        f"event {ctx.event_id} is a {event.name} of version {event.wire_version}, which this "
        "release does not know; upgrade the workers and retry it"
    )


def _retract_hook(
    provider: MemoryProvider,
    switched: Hook | None,
    before: Callable[[HookContext], None] | None,
) -> Hook:
    """Return the hook of switches for a provider that retracts; it returns "" if it did so."""

    def call(event: SessionSwitched, ctx: HookContext) -> str | None:
        if event.retracted:
            if before:
                before(ctx)
            provider.retract(event.retracted, ctx)
        if switched:
            switched(event, ctx)
        return "" if event.retracted else None

    return call


def _text_reply(hook: Hook) -> Hook:
    def call(event: ContextCompressing, ctx: HookContext) -> str | None:
        reply = hook(event, ctx)
        if not isinstance(reply, str):
            raise Permanent(f"on_pre_compress returned {type(reply).__name__}, not text")
        return reply

    return call


def _tool_call(provider: MemoryProvider, before: Callable[[HookContext], None] | None) -> Hook:
    config = provider.config
    name = config.stands_for or config.name
    left_alone = frozenset() if config.answering else provider.capabilities.outside_tools

    def call(event: ToolCalled, ctx: HookContext) -> str | None:
        if event.provider != name or event.tool in left_alone:
            return None
        if before and event.tool in provider.capabilities.forgetting_tools:
            before(ctx)
        return tool_result(provider, event.tool, event.arguments, ctx)

    return call


def tool_result(
    provider: MemoryProvider, tool: str, arguments: Mapping[str, Any], ctx: HookContext
) -> str:
    """Run a tool and return its result as JSON.

    Raises:
        Permanent: the result is not JSON.
        Exception: whatever the tool raises.
    """
    result = provider.handle_tool_call(tool, arguments, ctx)
    try:
        return msgspec.json.encode(result).decode()
    except (TypeError, ValueError) as error:
        raise Permanent(f"tool {tool!r} returned what is not JSON: {error}") from error
