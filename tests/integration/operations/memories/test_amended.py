"""One memory put right or taken back, by events: recalls follow at once, and a rebuild keeps it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.services.postgres_server import PostgresServer
from helpers.stories.published import published
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import PATIENT, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import MissingEvent
from memorybus.events import Envelope, MemoryWritten, OperatorActed, SessionSwitched, ToolCalled
from memorybus.ids import text_digest
from memorybus.recall.model import RecallRequest
from memorybus.redis.keys import Keys
from memorybus_console.cli.app import main
from memorybus_console.operations.memories import amending, browsing
from memorybus_console.operations.memories.amending import CannotAmend
from memorybus_console.operations.memories.browsing import KeptMemory
from memorybus_console.operations.preview import Asker, preview_prompt

pytestmark = pytest.mark.timeout(300)

WAIT_SECONDS = 60.0
SURE: Any = {**PATIENT, "recall_timeout": 30.0, "prefetch_wait": 30.0}
QUESTION = "Where does Ana live, and what does Ana collect?"
ANA = RecallRequest(query="", agent=None, user="ana", workspace=None)


@pytest.fixture(name="remembering", params=["builtin", "holographic", "postgres"])
def _remembering(
    request: pytest.FixtureRequest, redis_url: str, make_settings: MakeSettings, spawn: Spawn
) -> Iterator[Settings]:
    """A bus whose one provider has a person's entry, and two turns if it keeps what is said."""
    name = request.param
    table: dict[str, Any] = {}
    if name == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.url(server.database())
        fresh = {f"postgres@{number}": {"url": url, "schema": f"m{number}"} for number in (1, 2)}
        table = {"provider": {"postgres": {"url": url}, **fresh}}
    settings = make_settings(url=redis_url, providers=(name,), user="ana", **table, **SURE)
    child = worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.memory_written("add", "Ana lives in Berlin.", store="user")
        session.memory_written("add", "Ana collects stamps.", store="user")
        session.turn_completed("My secret word is wolpertinger.", "Noted.", ordinal=0)
        session.turn_completed("I saw Ana feed a parrot called Admiral.", "I see.", ordinal=1)
        assert bus.flush("logged", WAIT_SECONDS)
    yield settings
    assert child.terminate() == 0


def kept(settings: Settings, containing: str) -> list[KeptMemory]:
    """Return what the provider keeps of Ana that holds a text, former entries left out."""
    [name] = settings.providers
    found = browsing.list_memories(settings, name, ANA, containing=containing).memories
    return [one for one in found if not one.former]


def applied(client: redis.Redis, settings: Settings) -> None:
    """Wait until the provider has everything."""
    wait_applied(client, settings, settings.providers[0], WAIT_SECONDS)


def block(settings: Settings, question: str = QUESTION) -> str:
    """Return what Ana's next prompt would be given."""
    found = preview_prompt(settings, question, Asker(user="ana"))
    assert [one.outcome for one in found.answers] == ["fresh"], found.answers
    return found.block


def rebuilt(spawn: Spawn, settings: Settings, client: redis.Redis) -> None:
    """Rebuild the provider from history; what is compared must be the same (G8)."""
    [name] = settings.providers
    done = ran(spawn, settings, "rebuild", name, "--yes")
    assert done["compared"]["differing"] == 0
    applied(client, settings)


def amended(settings: Settings, action: Any, containing: str, content: str = "") -> list[Envelope]:
    """Put right or take back the one memory that holds a text; return the events of that."""
    [name] = settings.providers
    [memory] = kept(settings, containing)
    again = amending.find_memory(settings, name, ANA, memory.event, text_digest(memory.text))
    assert again == memory
    plan = amending.plan_amendment(settings, action, memory, content)
    assert set(plan.effects) == {name}
    done = amending.carry_out(settings, plan, wait=WAIT_SECONDS)
    assert (done.logged, done.behind) == (True, {})
    return [amending.find_event(settings, event) for event in done.events]


def test_an_entry_is_put_right_and_another_taken_back(remembering, spawn, redis_client):
    """G8: an entry is replaced, another removed, by events; a rebuild recalls the very same."""
    applied(redis_client, remembering)
    wait_until(lambda: "stamps" in block(remembering), "the entries are recalled", WAIT_SECONDS)
    [event] = amended(remembering, "correct", "Berlin", "Ana lives in Paris.")
    assert isinstance(event.event, MemoryWritten)
    assert (event.event.action, event.scope.user) == ("replace", "ana")
    [event] = amended(remembering, "delete", "stamps")
    assert isinstance(event.event, MemoryWritten)
    assert event.event.action == "remove"
    after = block(remembering)
    assert "Paris" in after
    assert "stamps" not in after
    assert [one.text for one in kept(remembering, "Paris")] == ["Ana lives in Paris."]
    assert (kept(remembering, "Berlin"), kept(remembering, "stamps")) == ([], [])
    rebuilt(spawn, remembering, redis_client)
    wait_until(
        lambda: block(remembering) == after, "the rebuilt state answers the same", WAIT_SECONDS
    )
    assert (kept(remembering, "Berlin"), kept(remembering, "stamps")) == ([], [])


@pytest.mark.parametrize("remembering", ["builtin"], indirect=True)
@pytest.mark.parametrize(("action", "right"), [("delete", ""), ("correct", "It lives outside.")])
def test_an_agents_note_leaves_the_warm_results_of_all_persons(
    remembering, redis_client, action, right
):
    """A note of the agent that is taken back or put right is in nobody's next prompt."""
    question = "Where does the axolotl live?"
    with MemoryBus.connect(remembering) as bus:
        note = "The axolotl lives behind the furnace."
        bus.session("s", warm=False).memory_written("add", note, store="memory")
        assert bus.flush("logged", WAIT_SECONDS)
        applied(redis_client, remembering)
        others = bus.session("b", user="bob", warm=False)
        assert "furnace" in others.prefetch(question, wait=WAIT_SECONDS)
        amended(remembering, action, "furnace", right)
        assert "furnace" not in others.prefetch(question, wait=WAIT_SECONDS)
        warm = redis_client.hvals(Keys(remembering.namespace).warm(others.slot))
        assert not [result for result in warm if b"furnace" in result]


def test_what_was_said_is_taken_back_and_put_right(remembering, spawn, redis_client):
    """G8: a turn goes with both sides, another is outdated by what is right; a rebuild agrees."""
    if remembering.providers == ("builtin",):
        pytest.skip("builtin keeps nothing of what is said")
    applied(redis_client, remembering)
    [event] = amended(remembering, "delete", "wolpertinger")
    assert isinstance(event.event, SessionSwitched)
    assert kept(remembering, event.event.retracted[0]) == [], "both sides of the turn are gone"
    [event] = amended(remembering, "correct", "Admiral", "Ana's parrot is called Commodore.")
    assert isinstance(event.event, ToolCalled)
    question = "What is the parrot of Ana called?"
    after = block(remembering, question)
    assert 0 < after.find("Commodore") < after.find("until"), "what is right comes first"
    rebuilt(spawn, remembering, redis_client)
    wait_until(
        lambda: block(remembering, question) == after, "the rebuilt state agrees", WAIT_SECONDS
    )
    assert kept(remembering, "wolpertinger") == []


def test_the_event_of_a_memory_is_found_wherever_it_lies(settings):
    """Near its time or not, in its session's lineage or a branch; of none it is said so."""
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", user="ana", warm=False)
        branch = session.branch("b")
        receipts = (
            session.turn_completed("now", "ok"),
            session.memory_written("add", "now", store="user"),
            session.turn_completed("long ago", "ok", at=1_600_000_000_000),
            branch.turn_completed("in a branch", "ok"),
        )
        assert bus.flush("logged", WAIT_SECONDS)
    for receipt in receipts:
        envelope = amending.find_event(settings, receipt.event_id)
        memory = KeptMemory(
            *("", envelope.scope.agent, envelope.scope.user),
            session=envelope.session.id,
            at=envelope.at,
        )
        assert amending.find_event(settings, receipt.event_id, memory) == envelope
    with pytest.raises(MissingEvent):
        amending.find_event(settings, "ab" * 16, KeptMemory("", user="ana", at=1))


def test_the_commands_plan_first_and_are_told_to_the_log(remembering, redis_client, capsys):
    """Without --yes nothing happens; with it the log has who and why before the memory goes."""
    if remembering.providers != ("builtin",):
        pytest.skip("the same for every provider")
    applied(redis_client, remembering)
    where = ("--url", remembering.url, "--namespace", remembering.namespace)
    where += ("--data-dir", str(remembering.data_dir))
    wait_until(lambda: len(kept(remembering, "Berlin")) == 1, "the entry is there", WAIT_SECONDS)
    [memory] = kept(remembering, "Berlin")

    def run(*words: str) -> dict[str, Any]:
        assert main(["memories", *words, *where, "--json"]) == 0, capsys.readouterr()
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    plan = run("delete", memory.event)
    assert (plan["executed"], plan["memory"]["text"]) == (False, "Ana lives in Berlin.")
    assert len(kept(remembering, "Berlin")) == 1
    assert main(["memories", "correct", memory.event, "Ana lives in Paris.", *where]) == 0
    assert "replaces the entry" in capsys.readouterr().out
    done = run("correct", memory.event, "Ana lives in Paris.", "--reason", "moved", "--yes")
    assert (done["executed"], done["behind"]) == (True, {})
    [act] = published(remembering, OperatorActed)
    assert (act.act, act.reason) == ("correct memory", "moved")
    assert act.about == {"event": memory.event, "provider": "builtin"}
    assert "Paris" not in str(act), "the record says nothing that anybody said"
    with pytest.raises(CannotAmend, match="keeps no memory of event"):
        amending.find_memory_of_event(remembering, "builtin", "delete", memory.event)
    with pytest.raises(MissingEvent, match="has that memory no more"):
        amending.find_memory(remembering, "builtin", ANA, memory.event, text_digest(memory.text))


def test_the_provider_that_keeps_a_memory_is_named(redis_client, make_settings, spawn):
    """A provider without the memory names the one that has it, with the option to give."""
    settings = make_settings(providers=("builtin", "holographic"), user="ana", **SURE)
    child = worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        said = bus.session("s", warm=False).turn_completed("I saw Ana feed a parrot.", "I see.")
        assert bus.flush("logged", WAIT_SECONDS)
    wait_applied(redis_client, settings, "holographic", WAIT_SECONDS)
    with pytest.raises(CannotAmend, match="holographic may; give --provider holographic"):
        amending.find_memory_of_event(settings, "builtin", "delete", said.event_id)
    assert child.terminate() == 0
