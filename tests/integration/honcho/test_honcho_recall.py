"""Honcho: what is recalled, asked of its model, shown to a model, given out and erased."""

import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.hook_world import ADA, BOB, TALK
from helpers.services.faulty_http import Fault
from honcho_world import World, honcho_world, opened
from memorybus.errors import ConfigError, MissingProvider, Transient, Unavailable
from memorybus.events import MemoryWritten, Scope, TurnCompleted
from memorybus.testing import FakeClock
from memorybus_providers import registry
from memorybus_providers.base import ProviderConfig, RecallContext, RecallScope
from memorybus_providers.contract.samples import AT
from memorybus_providers.honcho import HonchoProvider
from memorybus_providers.honcho.dialectic import THREAD
from memorybus_providers.honcho.questions import QuestionFile
from memorybus_providers.owners import Owner

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


def test_a_recall_finds_what_was_said_and_what_is_held(world: World) -> None:
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


def test_a_recall_makes_nothing(world: World) -> None:
    """Who has no workspace gets none by asking."""
    assert world.recall("bees") == []
    assert world.provider.system_prompt_block(ADAS) == ""
    assert world.call("honcho_profile") == {"error": "nothing is known of this user yet"}
    assert world.server.workspaces() == []


def test_without_a_question_the_base_context_answers(world: World) -> None:
    """The card and what is held of the person: what matters whatever is asked."""
    world.tell(said("I live in Ulm."))
    world.server.cards[SPACE, "agent__coder", "person__ada"] = ["Name: Ada"]
    assert world.recall(" ") == ["Name: Ada", "I live in Ulm."]
    assert world.provider.system_prompt_block(ADAS) == (
        "The user's card:\n- Name: Ada\nOf the user:\n- I live in Ulm."
    )


def test_the_base_context_is_kept_for_a_while(tmp_path: Path) -> None:
    """It is asked for again once ``context_ttl`` seconds have passed."""
    clock = FakeClock()
    with honcho_world(tmp_path, clock, context_ttl=60) as world:
        world.tell(said("one"))
        assert world.recall("") == ["one"]
        world.tell(said("two"))
        assert world.recall("") == ["one"]
        clock.advance(60)
        assert world.recall("") == ["one", "two"]


def test_everyone_is_asked_for_by_operators_alone(world: World) -> None:
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
def test_whose_a_workspace_is_survives_any_id(world: World, odd: str) -> None:
    """Ids that its server cannot keep are escaped in the metadata, and read again."""
    scope = Scope(agent=odd, user=odd, workspace=odd)
    world.tell(said("quince"), scope)
    world.tell(said("quince"))
    (one,) = world.provider.export(RecallScope(None, odd, None))
    assert (one.agent, one.user, one.workspace) == (odd, odd, odd)


def test_another_prefix_is_another_state(tmp_path: Path, world: World) -> None:
    """A copy with a prefix of its own finds nothing of the first (G8)."""
    world.tell(said("quince"))
    with opened(tmp_path, world.server.url, prefix="second") as provider:
        everyone = RecallContext(RecallScope(None, None, None))
        assert list(provider.prefetch("quince", everyone)) == []


@pytest.mark.parametrize("kind", ["half", "late", 500])
def test_a_recall_that_fails_says_so(world: World, kind: Any) -> None:
    """It raises instead of returning nothing, which would count as an answer."""
    world.tell(said("quince"))
    world.server.faults.append(Fault("/search", kind))
    with pytest.raises(Transient):
        world.provider.prefetch("quince", RecallContext(ADAS, deadline=0.5))


def test_the_requests_of_a_recall_go_side_by_side(world: World) -> None:
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


def asked_of(world: World, prompt: str) -> list[str]:
    """Recall in a session, and wait until its model has answered if it was asked."""
    found = world.recall(prompt, session=TALK)
    wait_until(lambda: THREAD not in {one.name for one in threading.enumerate()}, "it has answered")
    return found


def test_its_model_is_asked_every_few_turns(tmp_path: Path) -> None:
    """Beside the recall: the answer stands with what the next ones find."""
    with honcho_world(tmp_path, dialectic_every=2) as world:
        world.tell(said("quince"))
        world.server.answers.extend(["Ada likes fruit.", "Ada likes jam."])
        assert asked_of(world, "apple?") == []
        assert asked_of(world, "apple?\nAnd the answer to it") == ["Ada likes fruit."]
        assert asked_of(world, "pear?") == ["Ada likes fruit."]
        assert len(chats(world)) == 1
        assert asked_of(world, "plum?") == ["Ada likes fruit."]
        assert asked_of(world, "quince?") == ["quince", "Ada likes jam."]
        assert len(chats(world)) == 2
        assert {one["reasoning_level"] for one in chats(world)} == {"low"}
        assert {one["target"] for one in chats(world)} == {"person__ada"}


def test_its_answers_are_questioned_as_deep_as_told(tmp_path: Path) -> None:
    """Each further question has the answer before it; the last one counts."""
    with honcho_world(tmp_path, dialectic_every=1, dialectic_depth=3) as world:
        world.tell(said("quince"))
        world.server.answers.extend(["first", "second", "third"])
        asked_of(world, "apple?")
        queries = [one["query"] for one in chats(world)]
        assert ["first" in queries[1], "second" in queries[2]] == [True, True]
        assert asked_of(world, "apple?") == ["third"]


def test_its_model_has_a_daily_budget(tmp_path: Path) -> None:
    """All processes of a host count in one file; the next day (UTC) begins anew."""
    clock = FakeClock()
    ours, theirs = (QuestionFile(tmp_path / "home" / "asked.db", 3, clock) for _ in range(2))
    assert [ours.spend(), theirs.spend(), ours.spend(), theirs.spend()] == [True] * 3 + [False]
    clock.advance(86_400)
    assert ours.spend()
    assert not QuestionFile(tmp_path / "home" / "other.db", 0, clock).spend()


def test_a_worker_counts_its_model_over_all_hosts(tmp_path: Path) -> None:
    """Where somebody counts for all hosts the file counts no question; its word is what holds."""
    told: list[tuple[str, int]] = []

    def spend(what: str, a_day: int) -> bool:
        told.append((what, a_day))
        return len(told) < 2

    asked = QuestionFile(tmp_path / "asked.db", 200, FakeClock(), spend)
    assert [asked.spend(), asked.spend()] == [True, False]
    assert told == [("questions", 200)] * 2


def test_a_spent_budget_asks_nothing(tmp_path: Path) -> None:
    """Recalls go on without its model; the tool says why it does not answer."""
    with honcho_world(tmp_path, dialectic_every=1, dialectic_per_day=1) as world:
        world.tell(said("quince"))
        world.server.answers.append("Ada likes fruit.")
        asked_of(world, "apple?")
        assert asked_of(world, "pear?") == ["Ada likes fruit."]
        assert "error" in world.call("honcho_reasoning", query="What does she like?")
        assert len(chats(world)) == 1


def test_what_one_instance_finds_out_another_shows(tmp_path: Path) -> None:
    """Prompts and turns' ends are recalled by different instances: they count the same turns."""
    with honcho_world(tmp_path, dialectic_every=2) as world:
        world.tell(said("quince"))
        world.server.answers.append("Ada likes fruit.")
        asked_of(world, "apple?")
        with opened(tmp_path, world.server.url, dialectic_every=2) as provider:
            world.provider = provider
            assert asked_of(world, "apple?\nAnd the answer to it") == ["Ada likes fruit."]
            assert asked_of(world, "pear?") == ["Ada likes fruit."]
            assert len(chats(world)) == 1


def test_a_file_that_is_none_harms_no_recall(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What counts turns may break: its model is not asked then, and recalls go on."""
    (tmp_path / "asked.db").write_bytes(b"no database" * 100)
    with honcho_world(tmp_path, dialectic_every=1) as world:
        world.tell(said("quince"))
        assert asked_of(world, "quince?") == ["quince"]
        assert "file is not a database" in caplog.text


def test_what_was_found_out_is_forgotten(tmp_path: Path) -> None:
    """No byte of it stays in the file, and an answer that comes later is not kept."""
    with honcho_world(tmp_path, dialectic_every=1) as world:
        world.tell(said("quince"))
        world.server.answers.append("Ada likes fruit.")
        asked_of(world, "apple?")
        assert b"likes fruit" in (tmp_path / "asked.db").read_bytes()
        world.provider.forget(ADAS)
        QuestionFile(tmp_path / "asked.db", 1, FakeClock()).keep_answer(
            Owner("coder", "ada", ""), "talk", "Ada likes fruit."
        )
        assert b"likes fruit" not in (tmp_path / "asked.db").read_bytes()


def test_whoever_asks_and_dies_is_not_waited_for_forever(tmp_path: Path) -> None:
    """Nobody else asks in the meantime; after its time the next turn that is due does."""
    clock = FakeClock()
    file, owner = QuestionFile(tmp_path / "asked.db", 9, clock), Owner("coder", "ada", "")
    asks = [bool(file.count_turn(owner, "talk", f"prompt {n}", 1, 30.0).until) for n in range(2)]
    clock.advance(31.0)
    asks.append(bool(file.count_turn(owner, "talk", "prompt 2", 1, 30.0).until))
    assert asks == [True, False, True]


@pytest.mark.parametrize("kind", [500, "lose"])
def test_a_model_that_fails_harms_no_recall(
    tmp_path: Path, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The failure is logged, and the next turn asks again."""
    with honcho_world(tmp_path, dialectic_every=1) as world:
        world.tell(said("quince"))
        world.server.faults.append(Fault("/chat", kind))
        assert asked_of(world, "quince?") == ["quince"]
        assert "Honcho's model was not asked" in caplog.text
        world.server.answers.append("Ada likes fruit.")
        asked_of(world, "apple?")
        assert asked_of(world, "apple?") == ["Ada likes fruit."]


# -- tools ----------------------------------------------------------------------------------------


def test_tools_read_and_write(world: World) -> None:
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
def test_a_wrong_call_is_an_error_for_the_model(
    world: World, tool: str, arguments: dict[str, Any]
) -> None:
    """No argument names another person, and none reaches the server unchecked."""
    world.tell(said("quince"))
    world.server.asked.clear()
    assert tool in world.call(tool, **arguments)["error"]
    assert world.server.asked == []


# -- what is kept of somebody ---------------------------------------------------------------------


def test_what_is_erased_is_what_is_given_out(world: World) -> None:
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


def test_an_erasure_that_breaks_off_is_asked_again(world: World) -> None:
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
        ({"dialectic_depth": 4}, "dialectic_depth"),
        ({"dialectic_level": "most"}, "dialectic_level"),
        ({"timeout": 0}, "timeout"),
        ({"context_ttl": -1}, "context_ttl"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, Any], named: str) -> None:
    """Before anything is asked, and by name."""
    with pytest.raises(ConfigError, match=named):
        registry.create("honcho", ProviderConfig(name="peers", home=tmp_path, options=options))


def test_without_the_client_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options and tools can be shown without it; opening says what to install."""
    for name in [name for name in sys.modules if name.startswith("memorybus_providers.honcho.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "honcho", None)
    provider = HonchoProvider(ProviderConfig(name="peers", home=tmp_path))
    assert provider.get_tool_schemas()
    with pytest.raises(MissingProvider, match=r"pip install 'memorybus\[honcho\]'"):
        provider.open()


def test_health_asks_the_server(world: World) -> None:
    """A key that is refused is said; a server that is well says nothing, and holds nothing new."""
    assert world.provider.health(5.0) == ""
    world.server.faults.append(Fault("/list", 401))
    with pytest.raises(Unavailable, match="401"):
        world.provider.health(5.0)
    assert world.server.workspaces() == []
