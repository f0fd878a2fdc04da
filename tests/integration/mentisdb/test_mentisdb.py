"""MentisDB: what its chains hold after writes, also after lost replies, and what is recalled."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.providers import service_opening
from helpers.providers.hook_world import BOB, TALK, HookWorld
from helpers.services.faulty_http import Fault
from helpers.services.mentisdb_server import MentisDbServer, mentisdb_server
from helpers.stories.deriving import DERIVING, conclusions, tell_and_stop
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import PATIENT, worker
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM, Clock
from memorybus.errors import Transient
from memorybus.events import (
    Delegated,
    Derived,
    MemoryWritten,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)
from memorybus_providers.base import RecallScope
from memorybus_providers.contract.samples import AT
from memorybus_providers.mentisdb import MentisDbProvider

OWN = "memorybus__coder__ada__w"
TURN = TurnCompleted(user="I keep bees.", assistant="How many hives?")
SAID = "user: I keep bees.\nassistant: How many hives?"


class World(HookWorld):
    """One instance and its server."""

    def __init__(self, server: MentisDbServer, provider: MentisDbProvider) -> None:
        super().__init__(provider)
        self.server = server


def opened(
    home: Path, url: str, clock: Clock = SYSTEM, **options: Any
) -> AbstractContextManager[MentisDbProvider]:
    """Open an instance on a server."""
    return service_opening.opened(MentisDbProvider, home, clock, base_url=url, **options)


@contextmanager
def mentisdb_world(home: Path, clock: Clock = SYSTEM, **options: Any) -> Iterator[World]:
    """Open an instance on a server of its own."""
    with mentisdb_server() as server, opened(home, server.url, clock, **options) as provider:
        yield World(server, provider)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An instance on a fake server."""
    with mentisdb_world(tmp_path) as found:
        yield found


def edges(world: World, chain: str = OWN) -> list[list[tuple[str, str]]]:
    """Return how each thought of a chain is related to others, by what these say."""
    texts = {one["id"]: one["content"] for held in world.server.chains.values() for one in held}
    return [
        [(edge["kind"], texts[edge["target_id"]]) for edge in one["relations"]]
        for one in world.server.chains[chain]
    ]


def test_a_turn_is_one_thought(world):
    """In the chain of this agent and person, tagged with its event, session and time."""
    step = world.tell(TURN)
    (thought,) = world.server.chains[OWN]
    assert (thought["thought_type"], thought["content"]) == ("Finding", SAID)
    assert (thought["agent_id"], thought["role"]) == ("coder", "Memory")
    tags = {f"mb:event:{step.event_id}", "mb:session:talk", "mb:root:talk", f"mb:at:{AT}"}
    assert tags <= set(thought["tags"])


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (Delegated(task="count hives", result="nine"), "TaskComplete"),
        (MemoryWritten(action="add", store="user", content="Likes tea."), "UserTrait"),
        (MemoryWritten(action="add", store="memory", content="Use tabs."), "FactLearned"),
    ],
)
def test_an_event_has_its_type_of_thought(world, event, kind):
    """MentisDB's words for what sort of memory it is follow from the event."""
    world.tell(event)
    assert [one["thought_type"] for one in world.server.chains[OWN]] == [kind]


def test_a_session_costs_one_request_a_turn(world):
    """Where it is kept and what was said last is asked once."""
    world.tell(TURN)
    world.server.asked.clear()
    world.tell(TURN)
    assert world.server.asked == [("POST", "/v1/thoughts")]
    assert edges(world) == [[], [("ContinuesFrom", SAID)]]


@pytest.mark.parametrize("lost", range(3))
def test_a_very_long_text_is_held_once(world, lost):
    """It takes several thoughts; whichever answer is lost, none is sent again (G4)."""
    text = "honey " * 150_000
    step = world.step(TurnCompleted(user=text))
    sent = 0

    def fail(_: str, path: str) -> Fault | None:
        nonlocal sent
        sent += path == "/v1/thoughts"
        return Fault(path, "lose") if path == "/v1/thoughts" and sent == lost + 1 else None

    world.server.fault_of = fail
    assert len(world.deliver(step)) == 1
    assert "".join(world.server.contents(OWN)) == f"user: {text}"
    assert world.knows(step)


def write(action: Any, content: str = "", old: str = "", store: Any = "user") -> MemoryWritten:
    return MemoryWritten(action=action, store=store, content=content, old_text=old)


def test_a_write_takes_the_place_of_what_it_names(world):
    """A chain only grows: what was replaced or removed stays in it, and no recall shows it."""
    for text in ("Likes tea.", "Likes tea.", "Has tea at five.", "Lives in Ulm."):
        world.tell(write("add", text))
    world.tell(write("replace", "Lives in Bonn.", "Ulm"))
    world.tell(write("remove", old="tea"))
    world.tell(write("remove", old="tea at"))
    world.tell(write("remove", old=" "))
    assert world.recall("") == ["Lives in Bonn.", "Likes tea."]
    assert world.recall("tea Ulm Bonn lives") == ["Lives in Bonn.", "Likes tea."]
    assert edges(world)[3][:1] == [("Supersedes", "Lives in Ulm.")]
    assert edges(world)[4][:1] == [("Invalidates", "Has tea at five.")]


def later(session: str, parent: str = "talk") -> SessionRef:
    """Return a session of the same lineage."""
    return SessionRef(id=session, root="talk", parent=parent)


def switched(reason: Any, to: str, parent: str = "talk") -> SessionSwitched:
    return SessionSwitched(new_id=to, parent=parent, reason=reason)


def branched(world: World) -> str:
    """Say one thing, branch, say another there; return the branch's chain."""
    world.tell(TurnCompleted(user="quince one"))
    world.tell(switched("branch", "two"), session=later("two"))
    world.tell(TurnCompleted(user="quince two"), session=later("two"))
    return f"{OWN}__b-two"


def test_a_branch_is_a_chain(world):
    """It begins at the last thought of its parent; what was said in it is recalled everywhere."""
    chain = branched(world)
    world.tell(TurnCompleted(user="quince three"))
    assert world.server.contents(OWN) == ["user: quince one", "user: quince three"]
    assert edges(world, chain)[:2] == [
        [("BranchesFrom", "user: quince one")],
        [("BranchesFrom", "user: quince one")],
    ]
    assert sorted(world.recall("quince")) == [f"user: quince {n}" for n in ("one", "three", "two")]


@pytest.mark.parametrize("path", ["/v1/chains/branch", "/v1/thoughts"])
@pytest.mark.parametrize("kind", ["lose", "half", 500])
def test_a_branch_that_breaks_off_is_completed(world, path, kind):
    """Wherever it breaks off, the next try makes what is lacking and nothing twice (G4)."""
    world.tell(TurnCompleted(user="quince one"))
    world.server.faults.append(Fault(path, kind))
    step = world.step(switched("branch", "two"), session=later("two"))
    assert len(world.deliver(step)) == 1
    world.tell(TurnCompleted(user="quince two"), session=later("two"))
    assert sorted(world.recall("quince")) == ["user: quince one", "user: quince two"]
    assert [one for one in world.server.contents(f"{OWN}__b-two") if "quince" in one] == [
        "user: quince two"
    ]


def test_a_compressed_branch_goes_on_in_its_chain(tmp_path, world):
    """Also for another worker, which finds it by a mark."""
    chain = branched(world)
    world.tell(switched("compression", "three", "two"), session=later("three", "two"))
    with opened(tmp_path, world.server.url) as other:
        step = world.step(TurnCompleted(user="quince three"), session=later("three", "two"))
        HookWorld(other).send(step)
    said = [one for one in world.server.contents(chain) if one.startswith("user")]
    assert said == ["user: quince two", "user: quince three"]
    assert world.knows(step)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("compression", "ContinuesFrom"),
        ("resume", "ContinuesFrom"),
        ("delegation", "DerivedFrom"),
        ("reset", "RelatedTo"),
    ],
)
def test_relations_follow_the_lineage(world, reason, kind):
    """The first thought of a session is related to its parent's last; it is noted once."""
    world.tell(TurnCompleted(user="one"))
    world.tell(SessionStarted(parent="talk", reason=reason), session=later("two"))
    world.tell(switched(reason, "two"), session=later("two"))
    world.tell(TurnCompleted(user="two"), session=later("two"))
    noted = f"Session two: {reason}."
    assert edges(world) == [[], [(kind, "user: one")], [("ContinuesFrom", noted)]]
    assert world.recall("Session two") == ["user: two"]


def test_what_was_taken_back_is_not_recalled(world):
    """A rewind takes back its own lineage's thoughts alone, in every chain of it."""
    chain = branched(world)
    elsewhere = SessionRef(id="else", root="else")
    kept = world.tell(TurnCompleted(user="quince kept"), session=elsewhere)
    undone = world.tell(TurnCompleted(user="quince undone"), session=later("two"))
    rewind = SessionSwitched(
        new_id="two", reason="rewind", retracted=(undone.event_id, kept.event_id, "unknown")
    )
    world.tell(rewind, session=later("two"))
    assert "user: quince undone" in world.server.contents(chain)
    assert "user: quince undone" not in world.recall("quince")
    assert "user: quince kept" in world.recall("quince")


def concluded(text: str, *sources: str, supersedes: tuple[str, ...] = ()) -> Derived:
    """Return the summary of some events."""
    return Derived(kind="summary", text=text, sources=sources, supersedes=supersedes)


def rewind(*event_ids: str) -> SessionSwitched:
    """Return a rewind that retracts events."""
    return SessionSwitched(new_id="talk", reason="rewind", rewound=True, retracted=event_ids)


def test_a_summary_is_a_thought(world):
    """A summary is a `Summary`, a fact a `FactLearned`; other conclusions are not kept."""
    said = world.tell(TURN).event_id
    world.tell(concluded("Ada keeps bees.", said))
    for kind in ("fact", "topic", "profile"):
        world.tell(Derived(kind=kind, text=f"Bees, a {kind}.", sources=(said,)))
    kinds = [(thought["thought_type"], thought["role"]) for thought in world.server.chains[OWN][1:]]
    assert kinds == [("Summary", "Summary"), ("FactLearned", "Memory")]
    assert "Ada keeps bees." in world.recall("bees")


@pytest.mark.parametrize("order", ["conclusion first", "retraction first", "both at once"])
def test_a_conclusion_goes_with_its_source(world, order, tmp_path, monkeypatch):
    """Once a source is retracted no recall shows the conclusion, whichever comes first (G3)."""
    gone = world.tell(TurnCompleted(user="My PIN is 4711."), session=later("two")).event_id
    stays = world.tell(TURN).event_id
    known = world.step(concluded("The PIN is 4711, and bees.", stays, gone))
    undo = world.step(rewind(gone), session=later("two"))
    append = world.provider.client.append_alone

    def append_late(*arguments: Any) -> None:
        with opened(tmp_path, world.server.url) as other:  # another worker's
            HookWorld(other).send(undo)
        append(*arguments)

    if order == "both at once":
        monkeypatch.setattr(world.provider.client, "append_alone", append_late)
        world.send(known)
    for step in {"conclusion first": (known, undo), "retraction first": (undo, known)}.get(
        order, ()
    ):
        world.send(step)
    assert world.recall("PIN bees") == [SAID]
    written = "The PIN is 4711, and bees." in world.server.contents(OWN)
    assert written is (order != "retraction first")
    monkeypatch.undo()
    world.tell(concluded("Bees it is.", stays))
    assert set(world.recall("PIN bees")) == {SAID, "Bees it is."}


@pytest.mark.parametrize("kind", ["lose", "half", "late"])
def test_a_conclusion_in_doubt_goes_with_its_source(world, kind):
    """It is kept once, though its answer was lost, and a retraction before the next try holds."""
    gone = world.tell(TurnCompleted(user="My PIN is 4711.")).event_id
    known = world.step(concluded("The PIN is 4711.", gone))
    world.server.faults.append(Fault("/v1/thoughts", kind))
    with pytest.raises(Transient):
        world.send(known, deadline=1.0)
    world.tell(rewind(gone))
    assert world.knows(known)
    assert world.server.contents(OWN).count("The PIN is 4711.") == 1
    assert world.recall("PIN") == []


def test_a_newer_summary_takes_the_place_of_the_older_one(world):
    """Until a source of the newer one is retracted: then the older one holds again."""
    first, second = (world.tell(TurnCompleted(user=text)).event_id for text in ("one", "two"))
    old = world.tell(concluded("Bees, one.", first)).event_id
    world.tell(concluded("Bees, one and two.", first, second, supersedes=(old,)))
    assert world.recall("bees") == ["Bees, one and two."]
    world.tell(rewind(second))
    assert world.recall("bees") == ["Bees, one."]


def test_a_rewind_is_whole_in_one_thought(world):
    """An undo of turns in two chains, whose only answer is lost, retracts both (G4)."""
    branched(world)
    turns = [world.tell(TurnCompleted(user="quince gone"), session=session).event_id
             for session in (TALK, later("two"))]  # fmt: skip
    world.server.faults.append(Fault("/v1/thoughts", "lose"))
    world.deliver(world.step(rewind(*turns), session=later("two")))
    assert sorted(world.recall("quince")) == ["user: quince one", "user: quince two"]


def test_a_recall_makes_nothing(world):
    """Any request that names a chain makes it, so that the list is asked first."""
    assert world.recall("bees") == []
    assert world.call("mentisdb_ranked_search", text="bees") == {"results": []}
    assert world.server.chains == {}


def test_the_two_tools(world):
    """One appends a thought in the model's words, the other finds it; no tag of ours is taken."""
    appended = world.call(
        "mentisdb_append",
        content="Hives face south.",
        thought_type="Decision",
        tags=["bees", " MB:gone"],
        concepts=["layout"],
    )
    assert appended == {"appended": 1}
    (thought,) = world.server.chains[OWN]
    assert (thought["thought_type"], thought["concepts"]) == ("Decision", ["layout"])
    assert [tag for tag in thought["tags"] if not tag.startswith("mb:")] == ["bees"]
    assert world.call("mentisdb_ranked_search", text="hives") == {
        "results": [{"text": "Hives face south.", "type": "Decision", "at": AT}]
    }
    assert (
        "thought_type" in world.call("mentisdb_append", content="x", thought_type="Rumour")["error"]
    )


def test_an_export_shows_what_only_the_dashboard_erases(world):
    """MentisDB's REST API deletes nothing, so `forget` is not offered; an export lists it all."""
    branched(world)
    world.tell(TURN, BOB)
    assert world.provider.capabilities.forgets is False
    hers = list(world.provider.export(RecallScope(None, "ada", None)))
    assert [memory.user for memory in hers] == ["ada", "ada"]


SURE: Any = {**PATIENT, "prefetch_wait": 30.0, "partitions": 4}


@pytest.mark.timeout(240)
def test_a_rebuild_fills_chains_of_another_prefix_with_their_branches(
    redis_url, make_settings, spawn
):
    """The same events, each once, beside the first: then it serves (G8)."""
    with mentisdb_server() as server:
        settings = make_settings(
            url=redis_url,
            providers=("mentisdb",),
            provider={"mentisdb": {"base_url": server.url}},
            **SURE,
        )
        worker(spawn, settings, jobs=1)
        with MemoryBus.connect(settings) as bus:
            session = bus.session("talk", user="ada", warm=False)
            session.turn_completed("I saw a quince.", "", ordinal=0)
            branch = session.branch("aside")
            branch.turn_completed("And a medlar.", "", ordinal=0)
            assert bus.flush(timeout=30)
            aside = "__default__ada__w__b-aside"
            told = "user: And a medlar."
            wait_until(lambda: told in server.contents(f"memorybus{aside}"), "it is stored")
            ran(spawn, settings, "rebuild", "mentisdb", "--set", "prefix=second", "--yes")
            wait_until(lambda: told in server.contents(f"second{aside}"), "it is stored again")
    assert server.contents("second__default__ada__w") == ["user: I saw a quince."]


def summaries(server: MentisDbServer, chain: str) -> list[str]:
    """Return the summaries in a chain."""
    return [
        thought["content"]
        for thought in server.chains.get(chain, [])
        if thought["thought_type"] == "Summary"
    ]


@pytest.mark.timeout(240)
def test_a_session_that_ended_has_a_summary_until_its_turns_are_undone(make_world):
    """Workers derive it, a rebuild repeats it, and recalls of both drop it with its source (G3)."""
    with mentisdb_server() as server:
        world = make_world(
            **DERIVING | {"providers": ("mentisdb", "holographic"), "prefetch_wait": 30.0},
            provider={"mentisdb": {"base_url": server.url}},
        )
        tell_and_stop(world, "chat")
        world.worker()
        own = "__default__ada__w"
        wait_until(lambda: summaries(server, f"memorybus{own}"), "the summary is stored")
        (event,) = [each for each in conclusions(world) if each["event"]["kind"] == "summary"]
        with world.bus() as bus:
            session, asked = bus.session("chat", warm=False), "Is the harbour office in Bergen?"
            assert "From mentisdb" in session.prefetch(asked)
            undo = SessionSwitched(
                new_id="chat", reason="rewind", rewound=True,
                retracted=tuple(event["event"]["sources"]),
            )  # fmt: skip
            session.publish(undo)
            assert bus.flush("logged", 30)
            world.wait_applied()
            rebuilt = world.run("rebuild", "mentisdb", "--set", "prefix=second", "--yes")
            assert rebuilt.returncode == 0, rebuilt
            assert session.prefetch(asked) == ""
        assert f"second{own}" in server.chains
