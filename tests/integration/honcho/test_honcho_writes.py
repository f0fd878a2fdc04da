"""Honcho: what its server holds after writes, also where replies are lost or refused."""

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers.providers.hook_world import ADA, BOB, TALK
from helpers.services.faulty_http import Fault
from honcho_world import World, honcho_world, opened, unused_port
from memorybus.errors import Permanent, Transient, Unavailable
from memorybus.events import (
    Delegated,
    MemoryWritten,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)
from memorybus.testing import FakeClock

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


@pytest.mark.parametrize("kind", ["lose", "half", "late"])
@pytest.mark.parametrize(
    "event", [TURN, Delegated(task="count hives", result="nine")], ids=["turn", "delegation"]
)
def test_a_lost_answer_leaves_one_copy(world, kind, event):
    """What is stored and not answered is known by its id, and not sent again (G4)."""
    step = world.step(event)
    world.server.faults.append(Fault("/messages", kind))
    (failure,) = world.deliver(step, deadline=1.0)
    assert type(failure) is Transient
    parts = [(one.peer, one.metadata["part"]) for one in world.server.messages]
    assert parts == sorted(set(parts), key=lambda one: one[1])
    assert len(parts) == world.server.messages[0].metadata["parts"]
    assert len(world.writes()) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(500, Transient), (409, Transient), (503, Unavailable), (429, Unavailable)],
)
def test_a_refused_turn_is_sent_again(tmp_path, status, kind):
    """The client itself sends nothing again; the next try of the lane does, and once suffices."""
    clock = FakeClock()
    with honcho_world(tmp_path, clock) as world:
        step = world.step(TURN)
        world.server.faults.append(Fault("/messages", status))
        with pytest.raises(kind) as failure:
            world.send(step)
        assert type(failure.value) is kind
        assert len(world.writes()) == 1
        clock.advance(10.0)
        assert not world.knows(step)
        assert world.deliver(step) == []
        assert world.server.contents() == ["I keep bees.", "How many hives?"]


def test_a_rate_limit_is_waited_for(tmp_path):
    """For as long as ``Retry-After`` says no request is made, whatever it is for (429)."""
    clock = FakeClock()
    with honcho_world(tmp_path, clock) as world:
        world.server.faults.append(Fault("/messages", 429, {"Retry-After": "7"}))
        with pytest.raises(Unavailable, match="429"):
            world.tell(TURN)
        world.server.asked.clear()
        with pytest.raises(Unavailable, match=r"no call for 7\.0 s more"):
            world.tell(TURN, BOB)
        assert world.server.asked == []
        clock.advance(7.0)
        world.tell(TURN)
        assert world.server.contents() == ["I keep bees.", "How many hives?"]


def test_what_the_server_will_never_take_is_refused_for_good(world):
    """A 422 parks the event, and says why without the text that the server repeats."""
    body = {"detail": [{"msg": "too odd", "input": "I keep bees."}]}
    world.server.faults.append(Fault("/messages", 422, body=body))
    with pytest.raises(Permanent, match="too odd") as failure:
        world.tell(TURN)
    assert "bees" not in str(failure.value)


def test_a_server_that_is_down_holds_all_back(tmp_path):
    """Nothing is parked for a refused connection."""
    url = f"http://127.0.0.1:{unused_port()}"
    with honcho_world(tmp_path) as world, opened(tmp_path, url) as provider:
        world.provider = provider
        with pytest.raises(Unavailable):
            world.tell(TURN)


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

    def fail(path: str) -> Fault | None:
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
    """Return a write to a store."""
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


def test_a_write_changes_what_it_names(world):
    """A text is there once; what names several entries removes none, as in the agent's files."""
    for text in ("Likes tea.", "Likes tea.", "Has tea at five.", "Lives in Ulm."):
        world.tell(write("add", text))
    world.tell(write("replace", "Lives in Bonn.", "Ulm"))
    world.tell(write("remove", old="tea"))
    world.tell(write("remove", old="tea at"))
    world.tell(write("remove", old=" "))
    assert [one[2] for one in held(world)] == ["Likes tea.", "Lives in Bonn."]


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


def test_the_key_is_sent_and_never_shown(tmp_path, monkeypatch):
    """It goes with every request, and an answer that repeats it is shown without."""
    monkeypatch.setenv("PEERS_KEY", "sk-secret")
    with honcho_world(tmp_path, api_key_env="PEERS_KEY") as world:
        world.tell(TURN)
        assert set(world.server.keys) == {"Bearer sk-secret"}
        fault = Fault("/messages", 401, body={"detail": "bad key sk-secret"})
        world.server.faults.append(fault)
        with pytest.raises(Unavailable, match=r"bad key \*\*\*"):
            world.tell(TURN)
        assert "sk-secret" not in repr(world.provider.config)


def test_owners_share_nothing(world):
    """Two people, and two agents of one, have workspaces of their own."""
    for scope in (ADA, BOB):
        world.tell(TurnCompleted(user=f"{scope.user} saw a quince."), scope)
    assert world.recall("quince", ADA) == ["ada saw a quince."]
    assert world.recall("quince", BOB) == ["bob saw a quince."]
    assert world.server.workspaces() == ["memorybus__coder__ada", "memorybus__coder__bob"]
