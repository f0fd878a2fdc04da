"""What Hindsight is asked, and what a model may call."""

import msgspec
import pytest
from memorybus.events import TurnCompleted
from memorybus_providers.contract.samples import (
    HERE,
    OTHER_USER,
    feed,
    hook_context,
    recall_context,
    steps,
)

TURN = TurnCompleted(user="I like green tea.", assistant="Noted.", ordinal=0)
CTX = hook_context(steps(TURN)[0])


def test_a_memory_says_where_it_comes_from(open_hindsight):
    """A recalled turn has its session, time and event."""
    provider = open_hindsight()
    (step,) = steps(TURN)
    feed(provider, [step])
    (found,) = provider.prefetch("green tea?", recall_context(HERE))
    assert (found.session, found.at, found.event) == (step.session.id, CTX.at, step.event_id)
    assert found.score > 0


def test_what_others_put_into_a_bank_is_not_recalled(hindsight_fake, open_hindsight):
    """Memories without the owner's tags are no answer, though Hindsight's default gives them."""
    provider = open_hindsight()
    feed(provider, steps(TURN))
    (bank,) = hindsight_fake.banks.values()
    (ours,) = bank.values()
    bank["foreign"] = {**ours, "document_id": "foreign", "tags": []}
    bank["theirs"] = {**ours, "document_id": "theirs", "tags": ours["tags"][:2]}
    assert len(provider.prefetch("green tea?", recall_context(HERE))) == 1


def test_budgets_are_what_the_options_and_the_asker_say(hindsight_fake, open_hindsight):
    """A recall searches as thoroughly as told, for no more tokens than anybody wants."""
    provider = open_hindsight(recall_budget="high", recall_tokens=600)
    feed(provider, steps(TURN))
    for characters in (100_000, 400):
        wanted = msgspec.structs.replace(recall_context(HERE), budget=characters)
        provider.prefetch("tea " * 10_000, wanted)
    assert [one["budget"] for one in hindsight_fake.asked] == ["high", "high"]
    assert [one["max_tokens"] for one in hindsight_fake.asked] == [600, 100]
    assert {len(one["query"]) for one in hindsight_fake.asked} == {2_000}


def test_a_reflection_may_take_the_place_of_a_recall(hindsight_fake, open_hindsight):
    """Told so, a recall is one answer of Hindsight's model, none where nothing is known."""
    provider = open_hindsight(prefetch="reflect", reflect_budget="mid", reflect_tokens=300)
    assert provider.prefetch("green tea?", recall_context(HERE)) == []
    feed(provider, steps(TURN))
    (found,) = provider.prefetch("green tea?", recall_context(HERE))
    assert "green tea" in found.text
    assert found.source == "reflection"
    assert (hindsight_fake.asked[-1]["budget"], hindsight_fake.asked[-1]["max_tokens"]) == (
        "mid",
        300,
    )


def test_the_tools_retain_recall_and_reflect_for_their_owner(open_hindsight):
    """What a model retains, it and nobody else recalls; the same call again adds nothing."""
    provider = open_hindsight()
    told = {"content": "Ada was born in May.", "context": "birthdays"}
    for _ in range(2):
        assert provider.handle_tool_call("hindsight_retain", told, CTX) == {"ok": True}
    asked = {"query": "When was Ada born?"}
    found = provider.handle_tool_call("hindsight_recall", asked, CTX)
    assert [one["text"] for one in found["results"]] == ["Ada was born in May."]
    assert "May" in provider.handle_tool_call("hindsight_reflect", asked, CTX)["text"]
    theirs = msgspec.structs.replace(CTX, scope=OTHER_USER)
    assert provider.handle_tool_call("hindsight_recall", asked, theirs)["results"] == []


@pytest.mark.parametrize("arguments", [{}, {"query": ""}, {"query": "?"}, {"query": 1}, {"q": "a"}])
def test_arguments_that_do_not_fit_are_answered(open_hindsight, arguments):
    """A model that calls a tool wrongly is told so, and nothing is parked."""
    assert "error" in open_hindsight().handle_tool_call("hindsight_recall", arguments, CTX)


def test_an_unknown_tool_is_answered_with_those_there_are(open_hindsight):
    """A tool that Hindsight does not have is no silent success."""
    answer = open_hindsight().handle_tool_call("hindsight_dream", {}, CTX)
    assert "no tool 'hindsight_dream'" in answer["error"]
