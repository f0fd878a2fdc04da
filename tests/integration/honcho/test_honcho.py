"""Honcho: what its server holds after writes, what is recalled, shown to a model and erased."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers.providers import service_opening
from helpers.providers.hook_world import ADA, BOB, TALK, HookWorld
from helpers.services.faulty_http import Fault
from helpers.services.honcho_server import HonchoServer, honcho_server
from memorybus.clock import SYSTEM, Clock
from memorybus.errors import Transient
from memorybus.events import (
    MemoryWritten,
    Scope,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)
from memorybus.testing import FakeClock
from memorybus_providers.base import MemoryProvider, RecallContext, RecallScope
from memorybus_providers.contract.samples import AT
from memorybus_providers.honcho import HonchoProvider


class World(HookWorld):
    """One instance and its server.

    Attributes:
        server: the fake.
    """

    def __init__(self, server: HonchoServer, provider: MemoryProvider) -> None:
        super().__init__(provider)
        self.server = server


@contextmanager
def honcho_world(home: Path, clock: Clock = SYSTEM, **options: Any) -> Iterator[World]:
    """Open an instance on a server of its own."""
    with honcho_server() as server, opened(home, server.url, clock, **options) as provider:
        yield World(server, provider)


def opened(
    home: Path, url: str, clock: Clock = SYSTEM, **options: Any
) -> AbstractContextManager[HonchoProvider]:
    """Open an instance on a server."""
    said = {"base_url": url, **options}
    return service_opening.opened(HonchoProvider, home, clock, **said)


pytestmark = pytest.mark.skipif(find_spec("honcho") is None, reason="needs the extra honcho")

TURN = TurnCompleted(user="I keep bees.", assistant="How many hives?")
NOTES = "memorybus__notes"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An instance on a fake server."""
    with honcho_world(tmp_path) as found:
        yield found


def test_a_turn_is_two_messages_of_two_peers(world):
    """Person and agent are peers of a workspace that only this agent and person have."""
    step = world.tell(TURN)
    said = [(one.workspace, one.session, one.peer, one.content) for one in world.server.messages]
    assert said == [
        ("memorybus__coder__ada", "talk", "person__ada", "I keep bees."),
        ("memorybus__coder__ada", "talk", "agent__coder", "How many hives?"),
    ]
    assert {one.metadata["event_id"] for one in world.server.messages} == {step.event_id}
    assert {one.at for one in world.server.messages} == {"2023-11-14T22:13:20Z"}


def test_what_is_observed_is_an_option(tmp_path):
    """Each peer has the observation settings of the options in every session."""
    options = {"observe_person": False, "observe_agent": True, "person_observes": True}
    with honcho_world(tmp_path, agent_observes=False, **options) as world:
        world.tell(TURN)
        assert world.server.members["memorybus__coder__ada", "talk"] == {
            "person__ada": {"observe_me": False, "observe_others": True},
            "agent__coder": {"observe_me": True, "observe_others": False},
        }


def test_a_session_costs_one_request_a_turn(world):
    """What is made once is not asked for again."""
    world.tell(TURN)
    world.server.asked.clear()
    world.tell(TURN)
    assert world.server.asked == [
        ("POST", "/v3/workspaces/memorybus__coder__ada/sessions/talk/messages")
    ]


def test_the_requests_of_a_hook_share_its_deadline(world):
    """A server that answers nothing costs a hook less than its deadline."""
    world.server.faults += [Fault("/workspaces", "late")]
    with pytest.raises(Transient):
        world.send(world.step(TURN), deadline=0.5)


def test_a_workspace_that_was_deleted_is_made_again(world):
    """What an instance believed to be there is looked at anew once it proves to be gone."""
    world.tell(TURN)
    world.server.metadata.clear()
    world.server.messages.clear()
    world.tell(TURN)
    assert world.server.contents() == ["I keep bees.", "How many hives?"]


def test_a_long_message_is_parted(world):
    """No message exceeds 25,000 characters; together they are the text."""
    text = "honey " * 10_000
    world.tell(TurnCompleted(user=text, assistant="Sweet."))
    parts = world.server.contents("person__ada")
    assert len(parts) == 3
    assert max(map(len, parts)) <= 25_000
    assert "".join(parts) == text


@pytest.mark.parametrize("lost", range(3))
def test_a_text_of_several_requests_is_held_once(world, lost):
    """Whichever request's answer is lost, the parts that are held are not sent again (G4)."""
    text = "".join(f"{n:06} " + "x" * 24_994 for n in range(250))  # 250 parts: three requests
    step = world.step(TurnCompleted(user=text))
    sent = 0

    def fail(_: str, path: str) -> Fault | None:
        nonlocal sent
        if not path.endswith("/messages"):
            return None
        sent += 1
        return Fault(path, "lose") if sent == lost + 1 else None

    world.server.fault_of = fail
    world.deliver(step)
    assert "".join(world.server.contents()) == text
    numbers = [one.metadata["part"] for one in world.server.messages]
    assert all(late == early + 1 for early, late in pairwise(numbers))


def test_what_nobody_said_is_not_the_persons(world):
    """Blank texts are left out, and what the host wrote itself is no word of the person."""
    world.tell(TurnCompleted(user=" \n", assistant=""))
    world.tell(TurnCompleted(user="A task has ended.", assistant="I see.", synthetic=True))
    assert world.server.contents() == ["I see."]


def test_no_text_breaks_a_request(world):
    """NUL and lone surrogates, which the server cannot keep, are replaced."""
    world.tell(TurnCompleted(user="a\0b", assistant="c"))
    assert world.server.contents("person__ada") == ["a b"]


def write(action: Any, content: str = "", old: str = "", store: Any = "user") -> MemoryWritten:
    return MemoryWritten(action=action, store=store, content=content, old_text=old)


def held(world: World) -> list[tuple[str, str, str]]:
    """Return who holds what of whom."""
    return [(one.observer, one.observed, one.content) for one in world.server.conclusions]


def test_writes_to_the_stores_are_conclusions(world):
    """The agent holds them of the person, or of itself."""
    world.tell(write("add", "Likes tea."))
    world.tell(write("add", "Use metric units.", store="memory"))
    assert held(world) == [
        ("agent__coder", "person__ada", "Likes tea."),
        ("agent__coder", "agent__coder", "Use metric units."),
    ]


@pytest.mark.parametrize("path", ["/conclusions", f"/sessions/{NOTES}/messages"])
@pytest.mark.parametrize("kind", ["lose", "half", 500])
def test_a_lost_answer_leaves_one_conclusion(world, path, kind):
    """Wherever a write breaks off, the next try completes it and repeats nothing (G4)."""
    world.tell(write("add", "Lives in Ulm."))
    step = world.step(write("replace", "Lives in Bonn.", "Ulm"))
    world.server.faults.append(Fault(path, kind))
    assert len(world.deliver(step)) == 1
    assert [one[2] for one in held(world)] == ["Lives in Bonn."]
    marks = [one for one in world.server.messages if one.metadata["event_id"] == step.event_id]
    assert len(marks) == 1


def test_that_a_write_is_done_is_said_without_its_text(world):
    """What is removed stays nowhere; Honcho does not reason about the mark."""
    step = world.tell(write("add", "Likes tea."))
    world.tell(write("remove", old="tea"))
    marks = [(one.session, one.content, one.reasoned) for one in world.server.messages]
    assert marks == [(NOTES, "add user", False), (NOTES, "remove user", False)]
    assert world.knows(step)
    assert world.recall("tea") == []


def later(session: str) -> SessionRef:
    """Return a session of the same lineage."""
    return SessionRef(id=session, root="talk", parent="talk")


def places(world: World) -> dict[str, list[str]]:
    """Return what was said in each of Honcho's sessions."""
    said = world.server.sessions()
    return {session: [text for _, text in texts] for (_, session), texts in said.items()}


def switched(reason: Any, to: str, **more: Any) -> SessionSwitched:
    """Return a switch away from ``talk``."""
    return SessionSwitched(new_id=to, parent="talk", reason=reason, **more)


def test_a_compressed_conversation_goes_on_in_its_session(tmp_path, world):
    """A compression gives a new id to the same conversation, also for another worker."""
    world.tell(TurnCompleted(user="one"))
    world.tell(switched("compression", "two"), session=later("two"))
    world.tell(TurnCompleted(user="two"), session=later("two"))
    world.tell(
        SessionSwitched(new_id="three", parent="two", reason="compression"), session=later("three")
    )
    with opened(tmp_path / "other", world.server.url) as provider:
        world.provider = provider
        world.tell(TurnCompleted(user="three"), session=later("three"))
    assert places(world) == {"talk": ["one", "two", "three"]}


@pytest.mark.parametrize("reason", ["branch", "reset", "resume", "delegation"])
def test_another_conversation_has_a_session_of_its_own(world, reason):
    """Only a compression goes on; where others come from is noted."""
    world.tell(TurnCompleted(user="one"))
    started = SessionStarted(parent="talk", reason=reason, title="Bees")
    world.tell(started, session=later("two"))
    world.tell(switched(reason, "two"), session=later("two"))
    world.tell(TurnCompleted(user="two"), session=later("two"))
    assert places(world) == {"talk": ["one"], "two": ["two"]}
    known = world.server.metadata["memorybus__coder__ada", "two"]
    assert known == {"parent": "talk", "reason": reason, "title": "Bees"}


def test_what_was_taken_back_is_not_recalled(world):
    """Messages cannot be deleted in Honcho: they are marked, and left out where recalls search."""
    kept = world.tell(TurnCompleted(user="I saw a quince."))
    undone = world.tell(TurnCompleted(user="I saw a wolpertinger."))
    rewind = SessionSwitched(
        new_id="talk", reason="rewind", rewound=True, retracted=(undone.event_id, "unknown")
    )
    world.tell(rewind)
    assert world.recall("saw") == ["I saw a quince."]
    assert world.knows(kept)
    assert world.knows(undone)
    assert TALK.id in places(world)


def test_owners_share_nothing(world):
    """Two people, and two agents of one, have workspaces of their own."""
    for scope in (ADA, BOB):
        world.tell(TurnCompleted(user=f"{scope.user} saw a quince."), scope)
    assert world.recall("quince", ADA) == ["ada saw a quince."]
    assert world.recall("quince", BOB) == ["bob saw a quince."]
    assert world.server.workspaces() == ["memorybus__coder__ada", "memorybus__coder__bob"]


ADAS = RecallScope.own(ADA)
SPACE = "memorybus__coder__ada"


def said(user: str, assistant: str = "") -> TurnCompleted:
    return TurnCompleted(user=user, assistant=assistant)


def noted(text: str, store: Any = "user") -> MemoryWritten:
    """Return a write to a store."""
    return MemoryWritten(action="add", store=store, content=text)


def test_a_recall_finds_what_was_said_and_what_is_held(world):
    """Each with where it comes from: session, time, speaker, event."""
    step = world.tell(said("Bees like lavender.", "Bees dance."))
    world.tell(noted("Keeps bees."))
    world.tell(noted("Say bees, not insects.", "memory"))
    found = world.provider.prefetch("bees", RecallContext(ADAS))
    assert {one.text: (one.source, one.speaker) for one in found} == {
        "Bees like lavender.": ("messages", "ada"),
        "Bees dance.": ("messages", "coder"),
        "Keeps bees.": ("conclusions", ""),
        "Say bees, not insects.": ("notes", ""),
    }
    (first,) = [one for one in found if one.text == "Bees like lavender."]
    assert (first.session, first.at, first.event) == ("talk", AT, step.event_id)


def test_a_recall_makes_nothing(world):
    """Who has no workspace gets none by asking."""
    assert world.recall("bees") == []
    assert world.provider.system_prompt_block(ADAS) == ""
    assert world.call("honcho_profile") == {"error": "nothing is known of this user yet"}
    assert world.server.workspaces() == []


def test_without_a_question_the_base_context_answers(world):
    """The card and what is held of the person: what matters whatever is asked."""
    world.tell(said("I live in Ulm."))
    world.server.cards[SPACE, "agent__coder", "person__ada"] = ["Name: Ada"]
    assert world.recall(" ") == ["Name: Ada", "I live in Ulm."]
    assert world.provider.system_prompt_block(ADAS) == (
        "The user's card:\n- Name: Ada\nOf the user:\n- I live in Ulm."
    )


def test_the_base_context_is_kept_for_a_while(tmp_path):
    """It is asked for again once ``context_ttl`` seconds have passed."""
    clock = FakeClock()
    with honcho_world(tmp_path, clock, context_ttl=60) as world:
        world.tell(said("one"))
        assert world.recall("") == ["one"]
        world.tell(said("two"))
        assert world.recall("") == ["one"]
        clock.advance(60)
        assert world.recall("") == ["one", "two"]


def test_everyone_is_asked_for_by_operators_alone(world):
    """A part of the scope that is None stands for all, by the workspaces' metadata."""
    for scope in (ADA, BOB, Scope(agent="writer", user="ada", workspace="boat")):
        world.tell(said(f"quince of {scope.agent} {scope.user}"), scope)

    def found(scope: RecallScope) -> set[str]:
        return {one.text for one in world.provider.prefetch("quince", RecallContext(scope))}

    assert len(found(RecallScope(None, None, None))) == 3
    both = {"quince of coder ada", "quince of writer ada"}
    assert found(RecallScope(None, "ada", None)) == both
    assert found(RecallScope(None, "ada", "boat")) == {"quince of writer ada"}


@pytest.mark.parametrize("odd", ["nul\0byte", 'a "quoted" \\ one', "日本語", "Case"])
def test_whose_a_workspace_is_survives_any_id(world, odd):
    """Ids that its server cannot keep are escaped in the metadata, and read again."""
    scope = Scope(agent=odd, user=odd, workspace=odd)
    world.tell(said("quince"), scope)
    world.tell(said("quince"))
    (one,) = world.provider.export(RecallScope(None, odd, None))
    assert (one.agent, one.user, one.workspace) == (odd, odd, odd)


def test_the_requests_of_a_recall_go_side_by_side(world):
    """A recall takes as long as its slowest request, not as all of them."""
    world.tell(said("quince"))
    world.recall("quince")
    world.server.meet = threading.Barrier(3, timeout=10)
    assert world.recall("quince") == ["quince"]


# -- its model ------------------------------------------------------------------------------------


def chats(world: World) -> list[Any]:
    """Return the questions that its model was asked."""
    asked = zip(world.server.asked, world.server.bodies, strict=True)
    return [body for (_, path), body in asked if path.endswith("/chat")]


def test_a_spent_budget_asks_nothing(tmp_path):
    """Questions of a day are counted over all hosts; the tool answers why it does not ask."""
    spent: list[tuple[str, int]] = []

    def spend(what: str, a_day: int) -> bool:
        spent.append((what, a_day))
        return len(spent) <= a_day

    with honcho_world(tmp_path, spend=spend, dialectic_per_day=1) as world:
        world.tell(said("quince"))
        world.server.answers.append("Ada likes fruit.")
        question = {"query": "What does she like?"}
        assert world.call("honcho_reasoning", **question) == {"answer": "Ada likes fruit."}
        assert "today" in world.call("honcho_reasoning", **question)["error"]
        assert len(chats(world)) == 1
    assert spent == [("questions", 1)] * 2


def test_a_budget_of_none_asks_nothing(tmp_path):
    """With 0 questions a day its model is never asked, whether or not somebody counts."""
    with honcho_world(tmp_path, dialectic_per_day=0) as world:
        world.tell(said("quince"))
        assert "error" in world.call("honcho_reasoning", query="What does she like?")
        assert chats(world) == []


# -- tools ----------------------------------------------------------------------------------------


def test_tools_read_and_write(world):
    """Cards, search, context, its model, conclusions: of the user and of the agent itself."""
    world.tell(said("I saw a quince.", "Where?"))
    assert world.call("honcho_card", facts=["Name: Ada"]) == {"card": ["Name: Ada"]}
    assert world.call("honcho_profile") == {"card": ["Name: Ada"]}
    assert world.call("honcho_profile", peer="ai") == {"card": []}
    (found,) = world.call("honcho_search", query="quince")["results"]
    assert found == {"text": "I saw a quince.", "said_by": "ada", "session": "talk", "at": AT}
    assert world.call("honcho_conclude", conclusion="Likes jam.") == {"kept": 1, "removed": 0}
    assert world.call("honcho_context", query="jam") == {
        "card": ["Name: Ada"],
        "representation": ["I saw a quince.", "Likes jam."],
    }
    world.server.answers.append("Yes.")
    reasoned = world.call("honcho_reasoning", query="Jam?", reasoning_level="high", peer="ai")
    assert reasoned == {"answer": "Yes."}
    assert (chats(world)[-1]["reasoning_level"], chats(world)[-1]["target"]) == (
        "high",
        "agent__coder",
    )
    gone = world.call("honcho_conclude", conclusion="jam", remove=True)
    assert gone == {"kept": 0, "removed": 1}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("honcho_search", {"query": " "}),
        ("honcho_search", {"query": "x", "peer": "bob"}),
        ("honcho_profile", {"peer": "person__bob"}),
        ("honcho_forget", {}),
    ],
)
def test_a_wrong_call_is_an_error_for_the_model(world, tool, arguments):
    """No argument names another person, and none reaches the server unchecked."""
    world.tell(said("quince"))
    world.server.asked.clear()
    assert tool in world.call(tool, **arguments)["error"]
    assert world.server.asked == []


# -- what is kept of somebody ---------------------------------------------------------------------


def test_what_is_erased_is_what_is_given_out(world):
    """A person's workspaces go whole, with every agent; others' stay (server: 409 before)."""
    other = Scope(agent="writer", user="ada", workspace="boat")
    for scope in (ADA, BOB, other):
        world.tell(said("I saw a quince.", "Where?"), scope)
        world.tell(noted("Likes jam."), scope)
    world.call("honcho_card", facts=["Name: Ada"])
    hers = RecallScope(None, "ada", None)
    given = list(world.provider.export(hers))
    kinds = [(one.agent, one.kind, one.text) for one in given]
    assert sorted(kinds) == sorted(
        [
            ("coder", "card", "Name: Ada"),
            *(
                (agent, kind, text)
                for agent in ("coder", "writer")
                for kind, text in (
                    ("message", "I saw a quince."),
                    ("message", "Where?"),
                    ("conclusion", "Likes jam."),
                )
            ),
        ]
    )
    residue = world.provider.forget(hers)
    assert residue.remains == ()
    assert residue.erased
    assert world.server.workspaces() == ["memorybus__coder__bob"]
    assert not [key for key in world.server.cards if key[0] == SPACE]
    assert list(world.provider.export(hers)) == []
    assert world.provider.forget(hers).erased == 0
    assert world.recall("quince", BOB) == ["I saw a quince."]


def test_an_erasure_that_breaks_off_is_asked_again(world):
    """From the beginning, until nothing is left."""
    world.tell(said("quince"))
    world.server.faults.append(Fault(f"/workspaces/{SPACE}", 409))
    with pytest.raises(Transient):
        world.provider.forget(ADAS)
    world.provider.forget(ADAS)
    assert world.server.workspaces() == []
