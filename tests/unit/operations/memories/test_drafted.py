"""Which events put a memory right or take it back: it follows from the one that brought it."""

import pytest
from memorybus.events import (
    AnyEvent,
    Envelope,
    MemoryWritten,
    Scope,
    SessionRef,
    SessionSwitched,
    ToolCalled,
    TurnCompleted,
)
from memorybus.registry.tools import DeclaredTools
from memorybus_console.operations.memories.amending import (
    CannotAmend,
    draft_events,
    has_correction_tool,
)
from memorybus_console.operations.memories.browsing import KeptMemory

ANA = Scope(agent="a", user="ana", workspace="w", platform="cli")
OWN = Scope(agent="own", user="own")
PLACE = SessionRef("s2", "s1", "s1", 3)
ID = "ab" * 16


def brought(event: AnyEvent) -> Envelope:
    """Return an event of Ana's."""
    return Envelope(id=ID, key="session:k:s1", scope=ANA, session=PLACE, at=1, event=event)


def test_a_write_is_answered_by_a_write_of_the_same_scope_and_session():
    """An entry is replaced or removed by its very text, behind the write that brought it."""
    memory = KeptMemory("Ana likes tea.", "a", "ana", "w", kind="user-store", event=ID)
    write = brought(MemoryWritten(action="add", store="user", content="Ana likes tea."))
    [one] = draft_events("correct", memory, " Ana likes coffee. ", write, OWN, ())
    assert one.event == MemoryWritten(
        action="replace",
        store="user",
        content="Ana likes coffee.",
        old_text="Ana likes tea.",
        provenance={"write_origin": "operator"},
    )
    assert (one.scope, one.session) == (ANA, PLACE)
    assert one.key.startswith("store:")
    [gone] = draft_events("delete", memory, "", write, OWN, ())
    assert isinstance(gone.event, MemoryWritten)
    assert (gone.event.action, gone.event.content) == ("remove", "")
    assert gone.key == one.key


def test_an_entry_of_no_event_is_its_owners():
    """What a person wrote into a file by hand is replaced for whom the file belongs to."""
    memory = KeptMemory("By hand.", user="ana", kind="user")
    [one] = draft_events("delete", memory, "", None, OWN, ())
    assert one.scope == Scope(agent="own", user="ana")


def test_what_was_said_is_taken_back_by_a_rewind_under_its_own_key():
    """The rewind names the event and stays in its session and epoch (G3)."""
    memory = KeptMemory("I saw a heron.", "a", "ana", "w", kind="user", event=ID)
    [one] = draft_events(
        "delete", memory, "", brought(TurnCompleted(user="I saw a heron.")), OWN, ()
    )
    assert one.event == SessionSwitched(new_id="s2", reason="rewind", rewound=True, retracted=(ID,))
    assert (one.key, one.session) == ("session:k:s1", PLACE)


@pytest.mark.parametrize(
    ("name", "old"),
    [("0123456789abcd-0", {"fact_id": "0123456789abcd-0"}), ("", {"old_text": "x"})],
)
def test_what_was_said_is_put_right_at_each_provider_that_can(name, old):
    """Each provider with the tool is called, by the memory's name if it has one."""
    memory = KeptMemory("x", "a", "ana", "w", kind="user", event=ID, name=name)
    said = brought(TurnCompleted(user="x"))
    events = [one.event for one in draft_events("correct", memory, "y", said, OWN, ("h", "p"))]
    assert events == [
        ToolCalled(provider=who, tool="memory_correct", arguments={"content": "y", **old})
        for who in ("h", "p")
    ]


def test_what_no_event_can_change_is_refused_with_what_to_do():
    """Nothing is published where it would do nothing."""
    said = brought(TurnCompleted(user="x"))
    refused = (
        ("delete", KeptMemory("x", event=ID, former=True), "", said, "before"),
        ("delete", KeptMemory("x", kind="conclusion"), "", None, "memorybus forget"),
        ("correct", KeptMemory("x", kind="user", event=ID), "y", said, "take it back"),
        ("correct", KeptMemory("x", kind="user", event=ID), " ", said, "give the right text"),
    )
    for action, memory, content, event, why in refused:
        with pytest.raises(CannotAmend, match=why):
            draft_events(action, memory, content, event, OWN, ())
    long = KeptMemory("x" * 2_001, kind="user", event=ID)
    with pytest.raises(CannotAmend, match="too long"):
        draft_events("correct", long, "y", said, OWN, ("h",))


def test_only_a_tool_that_writes_puts_right():
    """A provider that declares the name for something that only reads is not called."""
    schemas = ({"name": "memory_correct"}, "no schema")
    assert has_correction_tool(DeclaredTools(schemas))
    assert not has_correction_tool(DeclaredTools(schemas, ("memory_correct",)))
    assert not has_correction_tool(DeclaredTools(("memory_correct",)))
