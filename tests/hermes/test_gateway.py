"""Agents as Hermes's gateway builds them: several people in one process."""

import pytest
from helpers.hermes.hermes_model import keeps
from helpers.hermes.hermes_world import World
from memorybus.events import MemoryWritten, SessionEnded, SessionStarted, TurnCompleted

pytestmark = [pytest.mark.hermes, pytest.mark.releases, pytest.mark.timeout(240)]


@pytest.fixture(scope="module", name="world")
def _world(hermes_world: World) -> World:
    return hermes_world


def test_two_people_share_nothing(world):
    """Two sessions of different users in one process: scopes, writes and recall stay apart."""
    gateway = world.hermes()
    world.model.script(
        "secret is bluebell",
        keeps("her word: bluebell", "user"),
        "kept",
    )
    gateway.do("message", session="s-anna", user="anna", text="my secret is bluebell")
    gateway.do("message", session="s-ben", user="ben", text="good day to you")
    world.wait_turns("s-anna", "my secret is bluebell")
    world.wait_turns("s-ben", "good day to you")
    for number in range(2):
        gateway.do("message", session="s-ben", user="ben", text=f"is the secret bluebell {number}")
        gateway.do("message", session="s-anna", user="anna", text=f"go on with bluebell {number}")
    world.wait_turns("s-ben", "good day to you", *(f"is the secret bluebell {n}" for n in range(2)))
    turns = [*world.events(TurnCompleted, "s-anna"), *world.events(TurnCompleted, "s-ben")]
    scopes = {(e.session.id, e.scope.user, e.scope.platform) for e in turns}
    assert scopes == {("s-anna", "anna", "telegram"), ("s-ben", "ben", "telegram")}
    [begun] = world.events(SessionStarted, "s-anna")
    details = {name: value for name, value in begun.event.details.items() if name != "cwd"}
    assert details == {
        "user_name": "name of anna",
        "chat_id": "chat-anna",
        "gateway_session_key": "agent:main:telegram:dm:anna",
    }
    [write] = world.wait_events(MemoryWritten, "s-anna")
    assert (write.scope.user, write.session.id) == ("anna", "s-anna")
    for number in range(2):
        wire = world.model.asked(f"is the secret bluebell {number}").users
        assert "her word" not in " ".join(wire)
        assert "my secret is" not in " ".join(wire)


def test_an_expired_session_ends_and_comes_again(world):
    """The gateway's sweep ends a session; a later message goes on with it, numbered on."""
    gateway = world.hermes()
    gateway.do("message", session="s-carl", user="carl", text="the first of carl")
    gateway.do("settle")
    gateway.do("expire", session="s-carl")
    world.wait_events(SessionEnded, "s-carl")
    gateway.do("message", session="s-carl", user="carl", text="the second of carl")
    world.wait_turns("s-carl", "the first of carl", "the second of carl")
    found = world.events(TurnCompleted, "s-carl")
    assert [e.event.ordinal for e in found] == [0, 1]
    assert len({e.session.root for e in found}) == 1


def test_cron_remembers_nothing(world):
    """A run that is not a person's conversation writes nothing and recalls nothing."""
    gateway = world.hermes()
    gateway.do("message", session="s-cron", user="", text="a nightly job", platform="cron")
    gateway.do("settle")
    gateway.do("message", session="s-dora", user="dora", text="hello from dora")
    world.wait_turns("s-dora", "hello from dora")
    assert not world.events(session="s-cron")
