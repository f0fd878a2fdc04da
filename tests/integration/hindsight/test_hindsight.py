"""What events leave in Hindsight, what it is asked, and what a model may call."""

import msgspec
import pytest
from helpers.services.faulty_http import Fault
from memorybus.errors import Permanent, Transient
from memorybus.events import (
    Delegated,
    MemoryWritten,
    Scope,
    SessionEnded,
    SessionRef,
    SessionSwitched,
    TurnCompleted,
)
from memorybus_providers.base import RecallScope, TurnCall
from memorybus_providers.contract.samples import (
    HERE,
    OTHER_USER,
    SampleStep,
    feed,
    hook_context,
    recall_context,
    steps,
)


def turn(n: int, text: str, ordinal: int = 0, session: str = "s") -> SampleStep:
    event = TurnCompleted(user=text, assistant="Indeed.", ordinal=ordinal)
    return SampleStep(n, event, HERE, SessionRef(id=session, root="s"))


def test_an_event_is_a_document_of_its_owners_bank(hindsight_fake, open_hindsight):
    """A turn, a note and a delegation are documents by their events' ids, one bank an owner."""
    provider = open_hindsight()
    told = steps(
        TurnCompleted(user="tea", assistant="Noted.", user_name="Ada", ordinal=0),
        MemoryWritten(action="add", store="user", content="Likes tea."),
        Delegated(task="find tea", result="found"),
    )
    feed(provider, told)
    feed(provider, steps(MemoryWritten(action="add", content="x"), scope=OTHER_USER, first=9))
    mine, theirs = hindsight_fake.banks.values()
    assert list(mine) == [step.event_id for step in told]
    assert len(theirs) == 1
    assert mine[told[0].event_id]["content"] == "Ada: tea\nAssistant: Noted."
    assert mine[told[0].event_id]["update_mode"] == "replace"
    assert "store:user" in mine[told[1].event_id]["tags"]


def test_a_switch_and_an_end_send_nothing_again(hindsight_fake, open_hindsight):
    """Whatever a session does after its turns, each turn was sent once."""
    first = turn(1, "tea", session="one")
    after = SampleStep(2, SessionSwitched(new_id="two", parent="one", reason="compression"))
    second = turn(4, "coffee", 1, session="two")
    feed(open_hindsight(), [first, after, SampleStep(3, SessionEnded()), second])
    assert len(hindsight_fake.retained) == 2
    assert sum("tea" in text for text in hindsight_fake.texts()) == 1


def test_a_server_that_keeps_no_texts_is_reported(hindsight_fake, open_hindsight):
    """Where entries cannot be replaced, the health names the server's setting."""
    provider = open_hindsight()
    assert provider.health(5.0) == ""
    hindsight_fake.features["store_document_text"] = False
    assert "HINDSIGHT_API_STORE_DOCUMENT_TEXT" in provider.health(5.0)


def test_turns_of_one_owner_go_together(hindsight_fake, open_hindsight):
    """A batch is one request for each owner, and what has nothing to say is in none."""
    provider = open_hindsight()
    told = [turn(n, f"word{n}", n) for n in range(4)]
    silent = SampleStep(8, TurnCompleted(user=" ", assistant=""), HERE)
    theirs = SampleStep(9, TurnCompleted(user="tea"), OTHER_USER)
    calls = [TurnCall(one.event, hook_context(one)) for one in (*told, silent, theirs)]
    assert provider.sync_turns(calls) == {}
    assert [len(bank) for bank in hindsight_fake.banks.values()] == [4, 1]
    assert len(hindsight_fake.keys) == 2


def test_a_batch_that_is_refused_says_nothing_of_any(hindsight_fake, open_hindsight):
    """Where a whole request is refused, the host is left to try its turns alone."""
    provider = open_hindsight()
    hindsight_fake.faults = [Fault("/memories", 422)]
    one = turn(1, "tea")
    with pytest.raises(Permanent):
        provider.sync_turns([TurnCall(one.event, hook_context(one))])


def test_an_answer_that_is_none_is_no_events_fault(hindsight_fake, open_hindsight):
    """What the client cannot read is tried again, and stored once."""
    provider, told = open_hindsight(), turn(1, "tea")
    hindsight_fake.faults = [Fault("/memories", "strange")]
    with pytest.raises(Transient):
        feed(provider, [told])
    feed(provider, [told])
    assert len(hindsight_fake.texts()) == 1


def test_a_queued_turn_has_an_id_of_event_text_and_bank(hindsight_fake, open_hindsight):
    """The same turn is queued once; an edited one, and a copy's in its own bank, are not lost."""
    told = turn(1, "tea")
    for provider in (open_hindsight(queued=True), open_hindsight(queued=True, prefix="copy")):
        feed(provider, [told, told])
        feed(provider, [turn(1, "gin")])
    assert len(hindsight_fake.operations) == 4
    assert [list(bank) for bank in hindsight_fake.banks.values()] == [[told.event_id]] * 2
    assert all("gin" in text for text in hindsight_fake.texts())


def test_what_is_still_queued_is_taken_back_later(hindsight_fake, open_hindsight):
    """A turn that the queue holds cannot be deleted yet, so its rewind is tried again."""
    provider = open_hindsight(queued=True)
    undone = turn(1, "tea")
    feed(provider, [undone])
    event = SessionSwitched(new_id="s", rewound=True, retracted=(undone.event_id,))
    rewind = SampleStep(2, event, HERE, undone.session)
    hindsight_fake.queueing = True
    with pytest.raises(Transient, match="queue"):
        feed(provider, [rewind])
    hindsight_fake.queueing = False
    feed(provider, [rewind])
    assert hindsight_fake.texts() == []


def test_what_nobody_said_is_not_retained_as_said(hindsight_fake, open_hindsight):
    """Of a turn that the host wrote, only the answer was said by somebody."""
    provider = open_hindsight()
    feed(provider, steps(TurnCompleted(user="task 7 ended", assistant="Good.", synthetic=True)))
    assert hindsight_fake.texts() == ["Assistant: Good."]


def test_forgetting_deletes_the_owners_banks_alone(hindsight_fake, open_hindsight):
    """A person's memories with every agent go, and no one else's; what remains is said."""
    provider = open_hindsight()
    for n, scope in enumerate((HERE, Scope(agent="b", user=HERE.user), OTHER_USER), 1):
        feed(provider, [SampleStep(n, TurnCompleted(user="tea"), scope)])
    person = RecallScope(None, HERE.user, None)
    assert len(list(provider.export(person))) == 2
    assert provider.forget(person).erased == 2
    assert provider.forget(person).remains == ()
    assert list(provider.export(person)) == []
    assert len(hindsight_fake.banks) == 1
    hindsight_fake.features["llm_trace"] = True
    (remains,) = provider.forget(RecallScope.own(OTHER_USER)).remains
    assert "llm_requests" in remains
    assert hindsight_fake.banks == {}


def test_export_tells_each_turn_with_its_event(open_hindsight):
    """What is exported has text, owner, session, time and event."""
    provider = open_hindsight()
    told = turn(1, "tea")
    feed(provider, [told])
    memory = next(iter(provider.export(RecallScope.own(HERE))))
    assert "tea" in memory.text
    assert (memory.agent, memory.user, memory.workspace) == (HERE.agent, HERE.user, "")
    assert (memory.session, memory.event) == ("s", told.event_id)
    assert memory.at > 0


def test_an_operator_recalls_everyones(open_hindsight):
    """Without a scope, the banks of all owners answer, the best first."""
    provider = open_hindsight()
    for n, scope in enumerate((HERE, OTHER_USER), 1):
        feed(provider, [SampleStep(n, TurnCompleted(user="tea " * n), scope)])
    everyone = RecallScope(None, None, None)
    assert len(provider.prefetch("tea", recall_context(everyone))) == 2


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
    assert [one["budget"] for one in hindsight_fake.recalls] == ["high", "high"]
    assert [one["max_tokens"] for one in hindsight_fake.recalls] == [600, 100]
    assert {len(one["query"]) for one in hindsight_fake.recalls} == {2_000}


def test_a_reflection_may_take_the_place_of_a_recall(hindsight_fake, open_hindsight):
    """Told so, a recall is one answer of Hindsight's model, none where nothing is known."""
    provider = open_hindsight(prefetch="reflect", reflect_budget="mid", reflect_tokens=300)
    assert provider.prefetch("green tea?", recall_context(HERE)) == []
    feed(provider, steps(TURN))
    (found,) = provider.prefetch("green tea?", recall_context(HERE))
    assert "green tea" in found.text
    assert found.source == "reflection"
    assert (hindsight_fake.recalls[-1]["budget"], hindsight_fake.recalls[-1]["max_tokens"]) == (
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
