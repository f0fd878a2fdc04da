"""Honcho: what is recalled, asked of its model, shown to a model, given out and erased."""

import re
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from helpers.providers.hook_world import ADA, BOB
from helpers.services.faulty_http import Fault
from honcho_world import World, honcho_world, opened
from memorybus.errors import ConfigError, MissingProvider, Transient, Unavailable, install_command
from memorybus.events import MemoryWritten, Scope, TurnCompleted
from memorybus.testing import FakeClock
from memorybus_providers import registry
from memorybus_providers.base import ProviderConfig, RecallContext, RecallScope
from memorybus_providers.contract.samples import AT
from memorybus_providers.honcho import HonchoProvider

pytestmark = pytest.mark.skipif(find_spec("honcho") is None, reason="needs the extra honcho")

ADAS = RecallScope.own(ADA)
SPACE = "memorybus__coder__ada"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An instance on a fake server."""
    with honcho_world(tmp_path) as found:
        yield found


def said(user: str, assistant: str = "") -> TurnCompleted:
    """Return a turn."""
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


def test_another_prefix_is_another_state(tmp_path, world):
    """A copy with a prefix of its own finds nothing of the first (G8)."""
    world.tell(said("quince"))
    with opened(tmp_path, world.server.url, prefix="second") as provider:
        everyone = RecallContext(RecallScope(None, None, None))
        assert list(provider.prefetch("quince", everyone)) == []


@pytest.mark.parametrize("kind", ["half", "late", 500])
def test_a_recall_that_fails_says_so(world, kind):
    """It raises instead of returning nothing, which would count as an answer."""
    world.tell(said("quince"))
    world.server.faults.append(Fault("/search", kind))
    with pytest.raises(Transient):
        world.provider.prefetch("quince", RecallContext(ADAS, deadline=0.5))


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


# -- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"base_url": "ftp://x"}, "base_url"),
        ({"prefix": "a_b"}, "prefix"),
        ({"results": 0}, "results"),
        ({"dialectic_timeout": 0}, "dialectic_timeout"),
        ({"dialectic_per_day": -1}, "dialectic_per_day"),
        ({"timeout": 0}, "timeout"),
        ({"context_ttl": -1}, "context_ttl"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, named):
    """Before anything is asked, and by name."""
    with pytest.raises(ConfigError, match=named):
        registry.create("honcho", ProviderConfig(name="peers", home=tmp_path, options=options))


def test_without_the_client_the_remedy_is_named(tmp_path, monkeypatch):
    """Options and tools can be shown without it; opening says what to install."""
    for name in [name for name in sys.modules if name.startswith("memorybus_providers.honcho.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "honcho", None)
    provider = HonchoProvider(ProviderConfig(name="peers", home=tmp_path))
    assert provider.get_tool_schemas()
    with pytest.raises(MissingProvider, match=re.escape(install_command("honcho"))):
        provider.open()


def test_health_asks_the_server(world):
    """A key that is refused is said; a server that is well says nothing, and holds nothing new."""
    assert world.provider.health(5.0) == ""
    world.server.faults.append(Fault("/list", 401))
    with pytest.raises(Unavailable, match="401"):
        world.provider.health(5.0)
    assert world.server.workspaces() == []
