"""Everybody is told exactly their own: two agents, two persons, three workspaces (one is none)."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.redis.served import served
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings, to_environ
from memorybus.events import Scope
from memorybus_console.cli.app import OK, main

pytestmark = [pytest.mark.xdist_group("own_scope"), pytest.mark.timeout(180)]

PROVIDERS = ("holographic", "builtin", "diary")
OWNERS = [Scope(*one) for one in product(("ada", "bob"), ("ann", "ben"), ("", "boat", "house"))]
WAIT_SECONDS = 60.0
"""Seconds that no test waits unless something is broken."""

Mark = tuple[str, str, str]


def mark(scope: Scope) -> Mark:
    """Return whose a memory is."""
    return scope.agent, scope.user, scope.workspace


def marks(texts: Sequence[str]) -> set[Mark]:
    """Return whose memories there are in some texts."""
    found = re.findall(r"walnut of (\w+)/(\w+)/(\w*) ", " ".join(texts))
    return {(agent, user, workspace) for agent, user, workspace in found}


def own(provider: str, asker: Mark) -> set[Mark]:
    """Return whose memories an asker is told: its own; of USER.md, all that tell of the person."""
    if provider == "builtin":
        return {mark(one) for one in OWNERS if one.user == asker[1]}
    return {asker}


class World:
    """A worker, and twelve owners' sessions of one id that have each told a thing."""

    def __init__(self, settings: Settings, bus: MemoryBus) -> None:
        self.settings = settings
        self.bus = bus
        for scope in OWNERS:
            session = self.session(scope)
            said = f"The walnut of {'/'.join(mark(scope))} is ripe."
            session.turn_completed(said, "Good.", ordinal=0)
            session.memory_written("add", said, store="user", tool_call_id="c")
        assert bus.flush("logged", WAIT_SECONDS)

    def session(self, scope: Scope) -> Session:
        """Return an owner's session."""
        agent, user, workspace = mark(scope)
        return self.bus.session("s", agent=agent, user=user, workspace=workspace, warm=False)


@pytest.fixture(scope="module", name="world")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    diary = {"kind": "registry:contract.registry_example:Notes", "dir": "{home}/diary"}
    options = {"providers": PROVIDERS, "provider": {"diary": diary}, "recall_budget": 4_000}
    with (
        served(tmp_path_factory, "own", **options) as running,
        MemoryBus.connect(running.settings) as bus,
    ):
        yield World(running.settings, bus)


def warm(session: Session) -> dict[str, set[Mark]]:
    """Return whose memories each provider has for a session, once all have answered."""

    def answered() -> dict[str, set[Mark]]:
        results = session._bus.warm.read(session._warm_keys)
        found = {name: marks(result.lines) for name, result in results.items()}
        return found if set(found) == set(PROVIDERS) and all(found.values()) else {}

    return wait_until(answered, "all have answered", WAIT_SECONDS)


def test_a_session_is_given_its_own(world):
    """G9: a prompt holds exactly the memories of its agent, person and workspace."""
    sessions = {mark(scope): world.session(scope) for scope in OWNERS}
    for session in sessions.values():
        session.queue_prefetch("Is the walnut ripe?")
    for asker, session in sessions.items():
        assert warm(session) == {name: own(name, asker) for name in PROVIDERS}
        assert marks([session.prefetch()]) == own("builtin", asker)


def test_a_tool_finds_its_own(world):
    """What the model looks up is as narrow as what it is given."""
    wait_until(
        lambda: world.bus.tools().named("memory_search"), "the tools are noted", WAIT_SECONDS
    )
    for scope in OWNERS:
        found = world.session(scope).call_tool(
            "memory_search", {"query": "walnut"}, timeout=WAIT_SECONDS
        )
        assert found["ok"], found
        assert marks([one["text"] + " " for one in found["results"]]) == {mark(scope)}


def test_a_recall_by_api_is_as_narrow(world):
    """`MemoryBus.recall` asks for one owner; whom it does not name, the settings do."""
    for scope in OWNERS:
        agent, user, workspace = mark(scope)
        found = world.bus.recall(
            "walnut", agent=agent, user=user, workspace=workspace, timeout=WAIT_SECONDS
        )
        assert found.missing == {}
        told = {name: [] for name in PROVIDERS}
        for item in found.results:
            told[item.provider].append(item.text)
        assert {name: marks(texts) for name, texts in told.items()} == {
            name: own(name, mark(scope)) for name in PROVIDERS
        }
    assert world.bus.recall("walnut", timeout=WAIT_SECONDS).results == ()


Run = Callable[..., Any]


@pytest.fixture(name="recall")
def _recall(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run ``memorybus recall`` and return whose memories holographic told, or what was said."""
    for name, value in to_environ(world.settings, {}).items():
        monkeypatch.setenv(name, value)

    def run(*words: str) -> Any:
        capsys.readouterr()
        wide = ("--timeout", str(WAIT_SECONDS), "--budget", "20000", "--provider", "holographic")
        code = main(["recall", "walnut", *words, *wide, "--json"])
        shown = capsys.readouterr()
        if code != OK:
            return shown.err
        return marks([one["text"] for one in json.loads(shown.out)["results"]])

    return run


def options(scope: Scope) -> list[str]:
    """Return an owner as the command line names it."""
    agent, user, workspace = mark(scope)
    return ["--agent", agent, "--user", user, "--workspace", workspace]


def test_an_operator_is_told_what_is_asked_for(world, recall):
    """The command asks for exactly one owner, and wider only by name."""
    assert recall() == set(), "whom the settings name has no memories"
    for scope in OWNERS:
        assert recall(*options(scope)) == {mark(scope)}
    ada_ann = [one for one in map(mark, OWNERS) if one[:2] == ("ada", "ann")]
    assert recall("--agent", "ada", "--user", "ann") == {("ada", "ann", "")}
    assert recall("--agent", "ada", "--user", "ann", "--all-workspaces") == set(ada_ann)
    everyone = ("--all-agents", "--all-users", "--all-workspaces")
    assert recall(*everyone) == {mark(one) for one in OWNERS}
    assert recall("--all-agents", "--all-users") == {mark(o) for o in OWNERS if not o.workspace}
    assert "exclude each other" in recall("--user", "ann", "--all-users")


def test_a_session_that_many_have_must_be_told_apart(world, recall):
    """As a session, the command asks for its owner; of several it wants to know whose."""
    assert "name whose" in recall("--session", "s", "--agent", "ada")
    for scope in OWNERS:
        assert recall("--session", "s", *options(scope)) == {mark(scope)}
    assert "no session" in recall("--session", "s", "--user", "nobody")
