"""What providers keep, looked through: of whom, and what, page by page, with where it came from."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.processes.commands import run_command
from helpers.stories.scenario import PATIENT, environ
from helpers.stories.world import standing_world
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, NoWorker
from memorybus.recall.model import RecallRequest
from memorybus_console.operations.memories import browsing

pytestmark = pytest.mark.timeout(240)

BOTH = ("builtin", "holographic")
PEOPLE = ("ana", "bob", "cleo")
SURE: Any = {**PATIENT, "recall_timeout": 30.0}


@pytest.fixture(name="applied", scope="module")
def _applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Return the settings of a bus on which three people's turns and entries are applied."""
    with standing_world(tmp_path_factory.mktemp("logs"), providers=BOTH, **SURE) as world:
        world.worker()
        with world.bus() as bus:
            for user in PEOPLE:
                session = bus.session(f"s-{user}", user=user, warm=False)
                for number in range(4):
                    session.turn_completed(f"{user} saw heron {number}", "Noted.", ordinal=number)
                session.memory_written("add", f"{user} likes herons", store="user")
            assert bus.flush("logged", 30)
        world.wait_applied()
        yield world.settings


def asked_of(user: str) -> RecallRequest:
    """Return a person's memories with every agent."""
    return RecallRequest(query="", agent=None, user=user, workspace=None)


def test_people_come_by_pages_and_each_once(applied):
    """Two providers keep something of three people: each is listed once, whatever the page."""
    whole = browsing.list_people(applied)
    assert [one.user for one in whole.people] == list(PEOPLE)
    assert all(one.memories.keys() == set(BOTH) for one in whole.people)
    assert whole.people[0].memories == {"builtin": 1, "holographic": 9}
    assert (whole.more, whole.unanswered) == (False, {})
    seen: list[str] = []
    after = None
    while True:
        page = browsing.list_people(applied, after, most=1)
        seen += [one.user for one in page.people]
        if not page.more:
            break
        after = page.people[-1].owner
    assert seen == list(PEOPLE)
    found = browsing.list_people(applied, containing="CLE")
    assert [one.user for one in found.people] == ["cleo"]


def test_memories_come_by_pages_and_name_their_events(applied):
    """Each provider's memories of one person, none of another's, each with the id of its event."""
    for name, count in (("builtin", 1), ("holographic", 9)):
        whole = browsing.list_memories(applied, name, asked_of("ana"))
        assert (len(whole.memories), whole.more) == (count, False)
        assert all(one.user == "ana" and len(one.event) == 32 for one in whole.memories)
        pages = [
            browsing.list_memories(applied, name, asked_of("ana"), skip=n, most=1)
            for n in range(count)
        ]
        assert [page.memories[0] for page in pages] == list(whole.memories)
        assert [page.more for page in pages] == [True] * (count - 1) + [False]
    found = browsing.list_memories(applied, "holographic", asked_of("ana"), containing="HERON 2")
    assert [one.text for one in found.memories] == ["ana saw heron 2"]
    with pytest.raises(ConfigError, match="there are: builtin, holographic"):
        browsing.list_memories(applied, "mem0", asked_of("ana"))


def test_the_commands_list_people_and_memories(applied):
    """`memories people` and `memories list` show the same, for people and as JSON."""

    def shown(*words: str) -> str:
        done = run_command(environ(applied), "memories", *words)
        assert done.returncode == 0, done.output
        return done.stdout

    assert all(user in shown("people") for user in PEOPLE)
    assert [one["user"] for one in json.loads(shown("people", "--json"))["people"]] == list(PEOPLE)
    told = json.loads(shown("list", "--user", "bob", "--json"))
    assert (told["provider"], told["memories"][0]["text"]) == ("builtin", "bob likes herons")
    listed = shown("list", "--user", "bob", "--provider", "holographic")
    assert "bob saw heron 3" in listed
    assert "ana" not in listed


def test_without_a_worker_nobody_can_say(settings, make_settings):
    """What providers keep they alone know: without a worker it is said what to start."""
    with pytest.raises(NoWorker, match="memorybus up"):
        browsing.first_browsable(settings)
    assert browsing.list_people(settings).people == ()
