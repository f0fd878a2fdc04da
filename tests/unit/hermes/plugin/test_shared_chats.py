"""A chat that several people share: each turn, and what happens in it, is its author's."""

from collections.abc import Iterator
from typing import Any

import pytest
from helpers.hermes.hermes_plugin import Host, hermes_host, talk
from memorybus.events import (
    ContextCompressing,
    Delegated,
    MemoryWritten,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
    TurnStarted,
)
from memorybus.recall.model import WarmAsk
from memorybus_hermes.plugin.provider import HermesMemory

ANN = {"id": "ann", "name": "Ann", "is_bot": False}
BEN = {"id": "ben", "name": "Ben", "is_bot": False}
BOT = {"id": "bot:alpha", "name": "Alpha", "is_bot": True}


@pytest.fixture(name="host")
def _host() -> Iterator[Host]:
    with hermes_host(compress_wait=0.001, opening_wait=0.0) as host:
        yield host


@pytest.fixture(name="memory")
def _memory(host: Host) -> HermesMemory:
    """Return what a gateway makes of a group that Ann was the first to speak in."""
    return host.instance("g1", user_id="ann", user_name="Ann", chat_type="group")


def start(memory: HermesMemory, author: dict[str, Any], text: str) -> None:
    """Begin a turn as a later Hermes does."""
    told = {f"author_{name}": value for name, value in author.items()}
    memory.on_turn_start(1, text, **told)


def turn(memory: HermesMemory, author: dict[str, Any], *texts: str) -> None:
    """Have a turn: the last of the transcript's."""
    start(memory, author, texts[-1])
    memory.prefetch(texts[-1], session_id="g1")
    complete(memory, author, *texts)


def complete(memory: HermesMemory, author: dict[str, Any], *texts: str) -> None:
    """Hand over a turn that is over, as the queue behind it does."""
    said = texts[-1]
    memory.sync_turn(said, said.upper(), session_id="g1", messages=talk(*texts), turn_author=author)


def of(host: Host, *kinds: Any) -> list[tuple[str, Any]]:
    """Return the events of some kinds with whose they are."""
    return [(e.scope.user, e.event) for e in host.events(*kinds)]


def test_a_turn_is_its_author_s(host, memory):
    """Scope, name and order key are the author's; the session is the one that all are in."""
    turn(memory, ANN, "I like tea")
    turn(memory, BEN, "I like tea", "I like rum")

    found = host.events(TurnCompleted)
    assert [(e.scope.user, e.event.user_name, e.event.user, e.session.id) for e in found] == [
        ("ann", "Ann", "I like tea", "g1"),
        ("ben", "Ben", "I like rum", "g1"),
    ]
    assert len({e.key for e in found}) == 2
    assert [user for user, _ in of(host, SessionStarted)] == ["ann", "ben"]
    said = [list(e.event.messages) for e in found]
    assert said == [talk("I like tea"), talk("I like rum")]


def test_what_happens_in_a_turn_is_its_author_s(host, memory):
    """Writes, delegations and the beginning of the turn; the agent's notes stay the agent's."""
    start(memory, BEN, "remember that I like rum")
    memory.on_memory_write("add", "user", "Likes rum.", {"session_id": "g1", "tool_call_id": "c"})
    memory.on_memory_write("add", "memory", "Rum is here.", {"tool_call_id": "d"})
    memory.on_delegation("find rum", "found", child_session_id="child")

    found = host.events(MemoryWritten, Delegated)
    assert {e.scope.user for e in found} == {"ben"}
    assert [e.key for e in found[:2]] == ["store:ben:user", "store:coder:memory"]
    (started,) = [e for e in host.bus.accepted.values() if isinstance(e.event, TurnStarted)]
    assert started.scope.user == "ben"


def test_a_turn_recalls_what_is_its_author_s(host, memory):
    """Recall is asked in the scope of who speaks; ahead, in that of who spoke last."""
    start(memory, BEN, "what do I like?")
    del host.bus.asked[:]
    memory.prefetch("what do I like?", session_id="g1")
    complete(memory, BEN, "what do I like?")
    start(memory, ANN, "and I?")
    memory.queue_prefetch("what do I like?", session_id="g1")  # Ben's, behind the queue

    asked = [ask for ask in host.bus.asked if isinstance(ask, WarmAsk)]
    assert [(ask.want.user, ask.want.query) for ask in asked if ask.want.query] == [
        ("ben", "what do I like?"),
        ("ben", "what do I like?\nWHAT DO I LIKE?"),
    ]


def test_a_turn_in_a_session_not_met_yet_is_its_author_s(host, memory):
    """Where Hermes names the session to later hooks only, the author is still who started."""
    start(memory, BEN, "what do I like?")
    del host.bus.asked[:]
    memory.prefetch("what do I like?", session_id="g2")
    memory.on_memory_write("add", "user", "Likes rum.", {"session_id": "g2", "tool_call_id": "c"})

    assert {ask.want.user for ask in host.bus.asked if isinstance(ask, WarmAsk)} == {"ben"}
    assert {(e.scope.user, e.session.id) for e in host.events(MemoryWritten)} == {("ben", "g2")}


def test_a_bot_s_turn_is_no_person_s_memory(host, memory):
    """It is kept as the bot's own and marked: nobody said it; and the bot is told nobody's."""
    turn(memory, ANN, "I like tea")
    turn(memory, BOT, "I like tea", "remember that Ann likes rum")
    turn(memory, {"id": None, "name": "Beta", "is_bot": True}, "I like tea", "me too")

    found = {e.event.user: (e.scope.user, e.event.synthetic) for e in host.events(TurnCompleted)}
    assert found == {
        "I like tea": ("ann", False),
        "remember that Ann likes rum": ("bot:alpha", True),
        "me too": ("bot:Beta", True),
    }


@pytest.mark.parametrize("author", [{}, None, "ann", {"id": None, "name": None}, {"id": " "}])
def test_without_an_author_a_turn_is_the_session_s(host, memory, author):
    """Releases up to 0.20 name none; what is no author is none."""
    memory.on_turn_start(1, "I like tea")
    memory.sync_turn("I like tea", "I see", session_id="g1", turn_author=author)

    ((user, event),) = of(host, TurnCompleted)
    assert (user, event.user_name, event.synthetic) == ("ann", "Ann", False)


def test_a_name_alone_makes_no_scope(host, memory):
    """Names are chosen by people: whoever is called like another is not the other."""
    memory.sync_turn("hi", "hello", session_id="g1", turn_author={"id": "", "name": "Ben"})

    ((user, event),) = of(host, TurnCompleted)
    assert (user, event.user_name) == ("ann", "Ben")


def test_all_who_spoke_go_on_and_end_together(host, memory):
    """An undo, a compression and an end are the chat's: every speaker's session takes the step."""
    turn(memory, BEN, "one")
    memory.on_session_switch("g1", rewound=True)
    turn(memory, BEN, "one again")
    memory.on_pre_compress(talk("one again"))
    memory.on_session_end(talk("one again"))
    memory.on_session_switch("g2", parent_session_id="g1", reason="compression")
    memory.on_memory_write("add", "user", "Likes rum.", {"tool_call_id": "c"})
    memory.on_session_end(talk("one again"))

    assert [e.session.epoch for e in host.events(TurnCompleted)] == [0, 1]
    steps = [(user, event.reason) for user, event in of(host, SessionSwitched)]
    assert sorted(steps) == [
        ("ann", "compression"),
        ("ann", "rewind"),
        ("ben", "compression"),
        ("ben", "rewind"),
    ]
    (write,) = host.events(MemoryWritten)
    assert (write.scope.user, write.session.id, write.session.root) == ("ben", "g2", "g1")
    ends = [(e.scope.user, e.session.id) for e in host.events(SessionEnded)]
    assert ends == [("ann", "g2"), ("ben", "g2")]


def test_a_new_conversation_is_begun_by_who_speaks_in_it(host, memory):
    """After /new nobody is in the new session but its own person, until somebody speaks."""
    turn(memory, BEN, "one")
    memory.on_session_end(talk("one"))
    memory.on_session_switch("g2", parent_session_id="g1", reset=True, reason="new_session")
    memory.on_session_end([])

    assert [(e.scope.user, e.session.id) for e in host.events(SessionEnded)] == [
        ("ann", "g1"),
        ("ben", "g1"),
        ("ann", "g2"),
    ]


def test_a_compression_hands_over_nobody_else_s_words(host, memory):
    """Of a shared window only the turns known to be the speaker's are published as the speaker's.

    Two people's same words are nobody's; what was said before this instance is not known.
    """
    window = talk("from before", "tea", "rum", "yes")
    turn(memory, ANN, "from before", "tea")
    turn(memory, BEN, "from before", "tea", "rum")
    turn(memory, ANN, "from before", "tea", "rum", "yes")
    start(memory, BEN, "yes")
    odd: Any = [None, *window]
    memory.on_pre_compress(odd)

    ((user, event),) = of(host, ContextCompressing)
    assert (user, event.messages) == ("ben", tuple(talk("rum")))


def test_where_one_person_speaks_a_compression_hands_over_all(host):
    """A direct chat, a terminal: the window is that person's, what came before included."""
    memory = host.instance("s1", user_id="ann", chat_type="dm")
    start(memory, ANN, "tea")
    memory.on_pre_compress(talk("from before", "tea"))

    ((user, event),) = of(host, ContextCompressing)
    assert (user, event.messages) == ("ann", tuple(talk("from before", "tea")))
