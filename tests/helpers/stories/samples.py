"""One envelope of every event type, with every field set: what the golden files hold."""

from typing import Final

from memorybus.events import (
    CanarySent,
    ContextCompressing,
    DeadLetterResolved,
    Delegated,
    Derived,
    Envelope,
    KnownEvent,
    MemoryCurated,
    MemoryWritten,
    OperatorActed,
    Recalled,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    ShownMemories,
    ToolCalled,
    TurnCompleted,
    TurnStarted,
)

_MESSAGES: Final = (
    {"role": "user", "content": "Where did I leave the ladder?"},
    {"role": "assistant", "content": "Behind the shed.", "tool_calls": [{"id": "c1", "n": 2}]},
)

SAMPLES: Final[tuple[KnownEvent, ...]] = (
    SessionStarted(
        platform="cli", agent_context="primary", title="Garden", parent="p", reason="branch"
    ),
    TurnStarted(number=3, message="Where is the ladder?"),
    TurnCompleted(
        user="Where did I leave the ladder?",
        assistant="Behind the shed.",
        messages=_MESSAGES,
        user_name="Ann",
        assistant_name="Bo",
        ordinal=7,
        model="m-1",
        tokens_in=120,
        tokens_out=9,
    ),
    MemoryWritten(
        action="replace",
        store="user",
        content="Likes ladders made of ash.",
        old_text="Likes ladders",
        provenance={"tool_call_id": "c1"},
    ),
    SessionSwitched(new_id="s-2", parent="s-1", reason="rewind", reset=True, rewound=True),
    ContextCompressing(messages=_MESSAGES, compression_count=2, wants_reply=True),
    Delegated(task="Count the ladders", result="Two", child_session="s-9"),
    SessionEnded(reason="exit", message_count=14, messages=_MESSAGES),
    ToolCalled(
        provider="holographic", tool="memory_add", arguments={"text": "x"}, wants_reply=True
    ),
    MemoryCurated(
        memory="0a1b2c3d4e5f60",
        before="stale",
        after="archived",
        reason="not used for 90 days",
        run="0198f2c4a1b27c3d8e4f5a6b7c8d9e11",
        successor="0f5e4d3c2b1a09",
    ),
    Recalled(
        turn="0198f2c4a1b27c3d8e4f5a6b7c8d9e10",
        asked="f2a95ed59c1c24b6",
        memories=(
            ShownMemories(
                "holographic", "fresh", ("0198f2c4a1b27c3d8e4f5a6b7c8d9e11", ""), (2.5, 1.0)
            ),
        ),
        block=b"x\x01\xcb\xc8\xe4\x02\x00\x01\xe2\x00\xdc",
    ),
    DeadLetterResolved(
        provider="holographic",
        event_id="0198f2c4a1b27c3d8e4f5a6b7c8d9e10",
        action="edit",
        reason="the name was misspelt",
        operator="ann@home",
        replacement={"user": "Where is the ladder?"},
    ),
    CanarySent(),
    OperatorActed(
        act="pause provider",
        operator="ann",
        reason="its server moves",
        about={"name": "holographic"},
        failed="no worker",
    ),
    Derived(
        kind="fact",
        text="Ann likes ladders made of ash.",
        about="Ann",
        sources=("0198f2c4a1b27c3d8e4f5a6b7c8d9e11",),
        supersedes=("0198f2c4a1b27c3d8e4f5a6b7c8d9e12",),
        cause="0198f2c4a1b27c3d8e4f5a6b7c8d9e13",
        deriver="model",
        revision="1.2",
        model="m-1",
        tokens_in=900,
        tokens_out=40,
        cost=0.5,
    ),
)


def envelope(event: KnownEvent) -> Envelope:
    """Return a fixed envelope around an event."""
    return Envelope(
        id="0198f2c4a1b27c3d8e4f5a6b7c8d9e0f",
        key="session:s-1",
        scope=Scope(agent="gardener", user="ann", workspace="home", platform="cli"),
        session=SessionRef(id="s-1", root="s-0", parent="s-0", epoch=1),
        at=1_760_000_000_123,
        v=event.version,
        trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        event=event,
    )
