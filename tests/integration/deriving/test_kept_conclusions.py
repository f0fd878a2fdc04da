"""Conclusions in both stores: kept with their sources, taken back with them, and never twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from memorybus.events import (
    AnyEvent,
    ContextCompressing,
    Derived,
    MemoryCurated,
    MemoryWritten,
    Position,
    Scope,
    SessionEnded,
    SessionRef,
    SessionSwitched,
    TurnCompleted,
)
from memorybus_providers.base import HookContext, ProviderConfig, RecallContext, RecallScope
from memorybus_providers.contract.samples import (
    AT,
    SESSION,
    SampleStep,
    call_hooks,
    feed,
    hook_context,
)
from memorybus_providers.fact_provider import FactProvider
from memorybus_providers.finding.source import MAX_CONCLUSIONS
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.postgres import PostgresProvider

ADA = Scope(agent="coder", user="ada")
BOB = Scope(agent="coder", user="bob")
EVERY = 3


@pytest.fixture(params=["holographic", "postgres"])
def facts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FactProvider]:
    """An open store of facts that notes sessions which are due to be derived."""
    more = {"name": request.param, "home": tmp_path, "derive_every_turns": EVERY}
    provider: FactProvider
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        provider = PostgresProvider(ProviderConfig(options={"url": url}, **more))
    else:
        provider = HolographicProvider(ProviderConfig(**more))
    provider.open()
    yield provider
    provider.shutdown()


class Told:
    """Applies events with rising numbers, as a lane does."""

    def __init__(self, facts: FactProvider) -> None:
        self.facts = facts
        self.n = 0

    def __call__(self, event: AnyEvent, scope: Scope = ADA) -> str:
        """Apply an event; return its id."""
        self.n += 1
        step = SampleStep(self.n, event, scope, SESSION)
        feed(self.facts, [step])
        return step.event_id


def turn(user: str, number: int = 0) -> TurnCompleted:
    """Return what a person said, and an answer."""
    return TurnCompleted(user=user, assistant="Noted.", ordinal=number)


def undo(*ids: str) -> SessionSwitched:
    """Return a rewind that retracts events."""
    return SessionSwitched(new_id=SESSION.id, reason="rewind", rewound=True, retracted=ids)


def texts(facts: FactProvider, scope: Scope = ADA) -> list[str]:
    """Return the conclusions that are kept, the newest first."""
    with facts.opened.reading(RecallScope.own(scope), 5.0) as search:
        return [one.text for one in search.source.conclusions(SESSION.id, RecallScope.own(scope))]


def digest(facts: FactProvider) -> dict[str, str]:
    """Return the digest of the whole state."""
    return dict(facts.digest())


def test_a_conclusion_is_kept_for_its_owner_alone(facts):
    """A summary is kept with its session, and nobody else sees it."""
    told = Told(facts)
    said = told(turn("I keep bees."))
    told(Derived(kind="summary", text="Ada keeps bees.", sources=(said,)))
    assert texts(facts) == ["Ada keeps bees."]
    assert texts(facts, BOB) == []


def test_many_facts_of_a_person_hide_no_summary(facts):
    """G10: the newest of each kind are read, so facts do not make a session look unseen."""
    told = Told(facts)
    said = told(turn("I keep bees."))
    told(Derived(kind="summary", text="Ada keeps bees.", sources=(said,)))
    for number in range(MAX_CONCLUSIONS + 1):
        told(Derived(kind="fact", text=f"Ada has hive {number}.", sources=(said,)))
    known = texts(facts)
    assert len(known) == MAX_CONCLUSIONS + 1
    assert "Ada keeps bees." in known


def test_a_conclusion_that_comes_again_is_kept_once(facts):
    """G4: a conclusion that a restored log brings again changes nothing."""
    told = Told(facts)
    event = Derived(kind="fact", text="Ada keeps bees.", sources=("ab" * 16,))
    step = SampleStep(1, event, ADA, SESSION)
    feed(facts, [step])
    before = digest(facts)
    told.n = 10
    call_hooks(facts, [step])
    assert texts(facts) == ["Ada keeps bees."]
    assert digest(facts) == before


@pytest.mark.parametrize("first", ["retraction", "conclusion"])
def test_a_conclusion_goes_with_its_source_whatever_comes_first(facts, first):
    """G8: once one of its sources is retracted, a conclusion is gone, in either order."""
    told = Told(facts)
    said, stays = told(turn("My PIN is 4711.")), told(turn("I keep bees."))
    events = [undo(said), Derived(kind="fact", text="The PIN is 4711.", sources=(stays, said))]
    for event in events if first == "retraction" else reversed(events):
        told(event)
    assert texts(facts) == []
    assert not any("4711" in memory.text for memory in facts.export(RecallScope.own(ADA)))
    asked = RecallContext(RecallScope.own(ADA))
    assert "4711" not in str(facts.prefetch("what is the PIN?", asked))


def test_the_order_of_conclusion_and_retraction_leaves_one_state(tmp_path):
    """G8: a replay that mixes the order keys otherwise ends with the same digest."""
    digests = []
    for name in ("one", "other"):
        facts = HolographicProvider(ProviderConfig(name=name, home=tmp_path / name))
        facts.open()
        said = SampleStep(1, turn("My PIN is 4711."), ADA)
        gone = SampleStep(2, undo(said.event_id), ADA)
        known = SampleStep(3, Derived(kind="fact", text="PIN 4711", sources=(said.event_id,)), ADA)
        feed(facts, [said, gone, known] if name == "one" else [said, known, gone])
        digests.append(digest(facts))
        facts.shutdown()
    assert digests[0] == digests[1]


def test_a_superseded_fact_states_until_when_it_held(facts):
    """A fact that names an older one comes first, and the older one states until when it held."""
    told = Told(facts)
    said = told(turn("hello"))
    old = told(Derived(kind="fact", text="Ada works at the harbour office.", sources=(said,)))
    moved = Derived(kind="fact", text="Ada works at the town library.", sources=(said,))
    told(msgspec.structs.replace(moved, supersedes=(old,)))
    found = facts.prefetch("where does Ada work?", RecallContext(RecallScope.own(ADA)))
    facts_found = [one for one in found if one.text.startswith("Ada works")]
    assert [(one.text, bool(one.until)) for one in facts_found] == [
        ("Ada works at the town library.", False),
        ("Ada works at the harbour office.", True),
    ]


def test_a_fact_that_is_taken_back_makes_the_older_one_hold_again(facts):
    """If the source of the newer fact is retracted, the older fact holds again."""
    told = Told(facts)
    first, second = told(turn("one")), told(turn("two"))
    old = told(Derived(kind="fact", text="Ada works at the harbour office.", sources=(first,)))
    new = Derived(kind="fact", text="Ada works at the town library.", sources=(second,))
    told(msgspec.structs.replace(new, supersedes=(old,)))
    told(undo(second))
    found = facts.prefetch("where does Ada work?", RecallContext(RecallScope.own(ADA)))
    assert [(one.text, one.until) for one in found if "works" in one.text] == [
        ("Ada works at the harbour office.", 0)
    ]


def test_a_session_is_due_every_few_turns_before_a_compression_and_at_its_end(facts):
    """Every `derive_every_turns` turns, a compression and the end make a session due."""
    told = Told(facts)
    causes = [told(turn(f"turn {number}", number)) for number in range(EVERY)][-1:]
    causes.append(told(ContextCompressing(messages=({"role": "user", "content": "old talk"},))))
    causes.append(told(SessionEnded()))
    assert sorted(due.cause for due in facts.due("extractive", 10)) == sorted(causes)
    assert {(due.scope, due.session) for due in facts.due("extractive", 10)} == {(ADA, SESSION)}


def test_an_undo_makes_its_session_due_without_what_was_undone(facts):
    """A summary that lost a source to an undo is made anew of what still holds."""
    told = Told(facts)
    stays, gone = told(turn("I keep bees in Bergen.")), told(turn("My PIN is 4711."))
    end = told(SessionEnded())
    gone_too = {"sources": (stays, gone), "cause": end, "deriver": "extractive"}
    told(Derived(kind="summary", text="PIN 4711", **gone_too))
    cause = told(undo(gone))
    (due,) = facts.due("extractive", 10)
    assert (due.cause, due.session) == (cause, SESSION)
    assert facts.material(due).sources == {stays}


def test_what_a_tool_forgets_is_in_no_conclusion(facts):
    """A summary goes with a passage that `memory_forget` forgets; a new one comes without it."""
    told = Told(facts)
    said, stays = told(turn("My PIN is 4711.")), told(turn("I keep bees in Bergen."))
    told(Derived(kind="summary", text="PIN 4711", sources=(stays, said), deriver="extractive"))
    told(Derived(kind="fact", text="Ada has PIN 4711", sources=(said,), deriver="model"))
    kept = facts.export(RecallScope.own(ADA))
    (name,) = [memory.name for memory in kept if memory.text == "My PIN is 4711."]
    ctx = hook_context(SampleStep(30, turn("unused"), ADA, SESSION), at=AT + 1)
    assert facts.handle_tool_call("memory_forget", {"fact_id": name}, ctx)["ok"]
    assert not any("4711" in memory.text for memory in facts.export(RecallScope.own(ADA)))
    assert "4711" not in str(sessions_found(facts, "bees"))
    (due,) = facts.due("extractive", 10)
    assert due.cause == ctx.event_id
    assert facts.material(due).sources == {stays}


def test_a_derived_fact_that_a_tool_forgets_is_gone_as_a_conclusion(facts):
    """A derived fact that `memory_forget` forgets is not kept beside its note either."""
    told = Told(facts)
    told(Derived(kind="fact", text="Ada has PIN 4711", sources=("ab" * 16,), deriver="model"))
    (name,) = [memory.name for memory in facts.export(RecallScope.own(ADA)) if memory.name]
    ctx = hook_context(SampleStep(30, turn("unused"), ADA, SESSION), at=AT + 1)
    assert facts.handle_tool_call("memory_forget", {"fact_id": name}, ctx)["ok"]
    assert list(facts.export(RecallScope.own(ADA))) == []


@pytest.mark.parametrize("first", ["cause", "conclusion"])
def test_what_was_derived_is_not_due(facts, first):
    """A cause with a conclusion is not due, whichever of the two was applied first."""
    told = Told(facts)
    end = SampleStep(50, SessionEnded(), ADA, SESSION)
    known = Derived(kind="topic", text="bees", cause=end.event_id, deriver="extractive")
    events = [end, SampleStep(51, known, ADA)]
    feed(facts, events if first == "cause" else events[::-1])
    told.n = 60
    assert facts.due("extractive", 10) == []


def test_what_is_settled_is_not_due_any_more(facts):
    """A session with nothing to conclude is settled without a conclusion."""
    told = Told(facts)
    told(SessionEnded())
    told(SessionEnded(), BOB)
    facts.settle("extractive", [due for due in facts.due("extractive", 10) if due.scope == ADA])
    assert [due.scope for due in facts.due("extractive", 10)] == [BOB]


def test_conclusions_are_exported_and_forgotten_with_the_person(facts):
    """What was concluded of a person is exported, and erased with all else (also what is due)."""
    told = Told(facts)
    said = told(turn("I keep bees."))
    told(Derived(kind="summary", text="Ada keeps bees.", sources=(said,)))
    told(SessionEnded())
    assert ("Ada keeps bees.", "summary") in [
        (memory.text, memory.kind) for memory in facts.export(RecallScope.own(ADA))
    ]
    facts.forget(RecallScope(None, "ada", None))
    assert texts(facts) == []
    assert facts.due("extractive", 10) == []
    assert list(facts.export(RecallScope.own(ADA))) == []


def test_the_material_of_a_session_is_what_was_said_until_its_cause(facts):
    """A deriver gets the session's passages with their events, and what is known of the person."""
    told = Told(facts)
    said = told(turn("I keep bees in Bergen."))
    told(SessionEnded())
    material = facts.material(facts.due("extractive", 1)[0])
    assert [(passage.speaker, passage.text) for passage in material.said] == [
        ("user", "I keep bees in Bergen."),
        ("assistant", "Noted."),
    ]
    assert material.sources == {said}


def sessions_found(facts: FactProvider, query: str, scope: Scope = ADA) -> list[dict[str, Any]]:
    """Return what the tool `session_search` finds."""
    position = Position(0, "1-1", 1)
    ctx = HookContext(scope, SESSION, "ab" * 16, position, 1, 5.0)
    result: Any = facts.handle_tool_call("session_search", {"query": query}, ctx)
    return list(result["sessions"])


def test_a_session_is_found_with_its_newest_summary_and_topics(facts):
    """A summary stands for its session in `session_search`, and names the event that brought it."""
    told = Told(facts)
    said = told(turn("I keep bees in Bergen."))
    told(Derived(kind="summary", text="old", sources=(said,), deriver="extractive"))
    new = Derived(kind="summary", text="new", sources=(said,), deriver="extractive")
    later = hook_context(SampleStep(20, new, ADA, SESSION), at=AT + 1)
    facts.on_derived(new, later)
    told(Derived(kind="topic", text="Bergen", sources=(said,), deriver="extractive"))
    (session,) = sessions_found(facts, "bees")
    assert session["summary"] == {"text": "new", "id": later.event_id, "deriver": "extractive"}
    assert session["topic"]["text"] == "Bergen"
    assert [line["text"] for line in session["said"]] == ["I keep bees in Bergen.", "Noted."]


ELSEWHERE = SessionRef(id="elsewhere", root="elsewhere")
"""Another session of the same person."""


def summed_up(facts: FactProvider, text: str, number: int = 60, **more: Any) -> str:
    """Let a session say something that its summary paraphrases; return the event that said it."""
    said = SampleStep(number, turn("The bees swarm in May.", number), ADA, ELSEWHERE)
    known = Derived(kind="summary", text=text, sources=(said.event_id,), deriver="model", **more)
    feed(facts, [said, SampleStep(number + 1, known, ADA, ELSEWHERE)])
    return said.event_id


def test_a_session_is_found_by_the_words_of_its_summary(facts):
    """A paraphrase that nobody said finds its session, by any form of its words, for its owner."""
    told = Told(facts)
    told(turn("I keep a dog."))
    summed_up(facts, "Ada's apiculture is seasonal.")
    (session,) = sessions_found(facts, "what about seasons of apiculture?")
    assert session["session"] == "elsewhere"
    assert session["summary"]["text"] == "Ada's apiculture is seasonal."
    assert {"The bees swarm in May."} <= {line["text"] for line in session["said"]}
    assert sessions_found(facts, "apiculture of lions") == []
    assert sessions_found(facts, "apiculture", BOB) == []


def test_a_summary_hides_no_session_that_said_it(facts):
    """A session in which the words were said comes first, then one whose summary has them all."""
    told = Told(facts)
    told(turn("Apiculture is the keeping of bees."))
    summed_up(facts, "Ada's apiculture is seasonal.")
    names = [session["session"] for session in sessions_found(facts, "apiculture")]
    assert names == [SESSION.id, "elsewhere"]


def test_an_older_or_retracted_summary_finds_nothing(facts):
    """Only the newest summary of a session speaks for it, and none whose source is gone."""
    told = Told(facts)
    summed_up(facts, "Ada's apiculture is seasonal.")
    newer = Derived(kind="summary", text="Ada breeds queens.", sources=("ab" * 16,))
    newer = msgspec.structs.replace(newer, deriver="model")
    step = SampleStep(70, newer, ADA, ELSEWHERE)
    facts.on_derived(newer, hook_context(step, at=AT + 1))
    assert sessions_found(facts, "apiculture") == []
    assert len(sessions_found(facts, "breeding queens")) == 1
    told.n = 80
    told(undo("ab" * 16))
    assert sessions_found(facts, "breeding queens") == []


@pytest.mark.parametrize("question", ["", "What do you know about me?"])
def test_a_first_question_gets_the_derived_profile(facts, question):
    """A model's newest profile answers behind what was kept, until one of its sources is gone."""
    told, asked = Told(facts), RecallContext(RecallScope.own(ADA))
    told(MemoryWritten(action="add", store="user", content="Lives in Bergen."))
    said = told(turn("I keep bees."))
    for number, deriver in enumerate(("model", "extractive", "model"), 1):
        event = Derived(
            kind="profile", text=f"Ada,\n{deriver} {number}.", sources=(said,), deriver=deriver
        )
        step = SampleStep(60 + number, event, ADA, SESSION)
        facts.on_derived(event, hook_context(step, at=AT + number))
    texts_found = [one.text for one in facts.prefetch(question, asked)]
    assert texts_found[:2] == ["Lives in Bergen.", "Ada, model 3."]
    assert "model 1." not in str(texts_found)
    assert "extractive 2." not in str(texts_found)
    assert "Ada, model 3." in facts.system_prompt_block(RecallScope.own(ADA))
    earlier = msgspec.structs.replace(asked, as_of=AT + 1)
    assert "Ada, model 1." in [one.text for one in facts.prefetch(question, earlier)]
    assert facts.prefetch(question, RecallContext(RecallScope.own(BOB))) == []
    told.n = 80
    told(undo(said))
    assert [one.text for one in facts.prefetch(question, asked)] == ["Lives in Bergen."]


def test_no_profile_is_derived_from_a_profile(facts):
    """What a deriver gets as known of a person is what was kept and said, never a conclusion."""
    told = Told(facts)
    said = told(turn("I keep bees in Bergen."))
    told(Derived(kind="profile", text="Ada paints.", sources=(said,), deriver="model"))
    told(SessionEnded())
    essentials = facts.material(facts.due("extractive", 1)[0]).essentials
    assert essentials
    assert "paints" not in str(essentials)


def test_a_summary_never_crowds_out_what_was_said(facts):
    """Summaries, topics and profiles add nothing to a block, whose room is for the evidence."""
    told, asked = Told(facts), RecallContext(RecallScope.own(ADA), budget=300)
    said = [told(turn(f"I keep {n} hives of bees in garden {n}.", n)) for n in range(1, 9)]
    before = facts.prefetch("where are the bees?", asked)
    for kind in ("summary", "topic", "profile"):
        told(Derived(kind=kind, text="Ada keeps bees in gardens.", sources=tuple(said)))
    assert before
    assert facts.prefetch("where are the bees?", asked) == before


HARBOUR = "I work at the harbour office in Bergen."


def block(facts: FactProvider, question: str, budget: int = 2_000) -> list[str]:
    """Return the texts of the block for a question, best first."""
    asked = RecallContext(RecallScope.own(ADA), budget=budget)
    return [found.text for found in facts.prefetch(question, asked)]


@pytest.mark.parametrize("budget", [300, 2_000])
def test_facts_that_restate_what_was_said_change_no_block(facts, budget):
    """A fact that only repeats its source, or merges two, leaves the whole block as it was."""
    told = Told(facts)
    said = [told(turn(f"I keep {n} hives of bees in garden {n}.", n)) for n in range(1, 9)]
    before = block(facts, "where are the bees?", budget)
    for number, event in enumerate(said, start=1):
        again = f"Ada keeps {number} hives of bees in garden {number}."
        told(Derived(kind="fact", text=again, sources=(event,)))
    told(Derived(kind="fact", text="Ada has bees in two gardens.", sources=tuple(said[:2])))
    assert before
    assert block(facts, "where are the bees?", budget) == before


def test_a_fact_stands_that_has_a_word_which_its_source_lacks(facts):
    """Who was meant stands in the fact alone, so it is in the block beside its source."""
    told = Told(facts)
    said = told(turn("She moved to Bergen in May."))
    told(Derived(kind="fact", text="Nora moved to Bergen in May.", sources=(said,)))
    assert block(facts, "when did Nora move to Bergen?")[0] == "Nora moved to Bergen in May."
    assert block(facts, "who moved to Bergen?") == ["She moved to Bergen in May."]


def test_a_fact_stands_for_sources_that_left_prompts(facts):
    """If a fact's source is archived, the fact is in the block, and names the event it came by."""
    told = Told(facts)
    entry = told(MemoryWritten(action="add", store="user", content=HARBOUR))
    fact = told(Derived(kind="fact", text="Ada works at the harbour office.", sources=(entry,)))
    kept = facts.export(RecallScope.own(ADA))
    (name,) = [memory.name for memory in kept if memory.text == HARBOUR]
    told(MemoryCurated(memory=name, before="active", after="archived"))
    (found,) = facts.prefetch("where do I work?", RecallContext(RecallScope.own(ADA)))
    assert (found.text, found.event) == ("Ada works at the harbour office.", fact)


def test_the_source_of_news_stands_first_with_what_was_true_before(facts):
    """A knowledge update takes the room of what was said, and the new value comes first."""
    told = Told(facts)
    first, second = told(turn(HARBOUR)), told(turn("I work at the town library now."))
    old = told(Derived(kind="fact", text="Ada works at the harbour office.", sources=(first,)))
    new = Derived(kind="fact", text="Ada works at the town library.", sources=(second,))
    told(msgspec.structs.replace(new, supersedes=(old,)))
    found = facts.prefetch("where do I work?", RecallContext(RecallScope.own(ADA)))
    assert [(each.text, each.before) for each in found if "work" in each.text] == [
        ("I work at the town library now.", "Ada works at the harbour office."),
        (HARBOUR, ""),
    ]


def test_news_in_other_words_comes_before_what_it_replaces(facts):
    """A newer fact that has no word of the question is shown, right before the old statement."""
    told = Told(facts)
    first, second = told(turn(HARBOUR)), told(turn("Last week was my first one among the books."))
    old = told(Derived(kind="fact", text="Ada works at the harbour office.", sources=(first,)))
    new = Derived(kind="fact", text="Ada is a librarian.", sources=(second,))
    told(msgspec.structs.replace(new, supersedes=(old,)))
    assert block(facts, "where is my office?")[:2] == ["Ada is a librarian.", HARBOUR]


def test_a_tool_finds_a_fact_beside_its_source(facts):
    """What a block leaves out is found when it is asked for, so it can be corrected by its id."""
    told = Told(facts)
    said = told(turn(HARBOUR))
    told(Derived(kind="fact", text="Ada works at the harbour office.", sources=(said,)))
    ctx = hook_context(SampleStep(99, turn("?"), ADA, SESSION))
    result: Any = facts.handle_tool_call("memory_search", {"query": "harbour office"}, ctx)
    texts_found = {found["text"] for found in result["results"]}
    assert texts_found == {HARBOUR, "Ada works at the harbour office."}


@pytest.mark.parametrize("action", ["remove", "replace"])
def test_what_was_concluded_of_an_entry_goes_with_it(facts, action):
    """A store's entry that is removed or replaced stays in no profile, and another one is due."""
    told = Told(facts)
    entry = told(MemoryWritten(action="add", store="user", content="Ada's PIN is 4711."))
    told(Derived(kind="profile", text="PIN 4711", sources=(entry,), deriver="extractive"))
    new = "Ada keeps bees." if action == "replace" else ""
    cause = told(MemoryWritten(action=action, store="user", content=new, old_text="PIN"))
    assert texts(facts) == []
    assert [due.cause for due in facts.due("extractive", 10)] == [cause]
    told(Derived(kind="profile", text="PIN 4711 again", sources=(entry,), deriver="extractive"))
    assert texts(facts) == []


GOING = (
    {"role": "user", "content": "I moved to Bergen in May and work at the harbour office."},
    {"role": "assistant", "content": "Noted."},
)


def test_a_compression_is_told_what_to_keep(facts):
    """Who asks gets what is about to go in short, behind the summary that a model has made."""
    told = Told(facts)
    said = told(turn("hello"))
    told(Derived(kind="summary", text="Ada greeted.", sources=(said,), deriver="model"))
    event = ContextCompressing(messages=GOING, wants_reply=True)
    step = SampleStep(90, event, ADA, SESSION)
    reply = facts.on_pre_compress(event, hook_context(step))
    first, *rest = reply.splitlines()
    assert first == "Ada greeted."
    assert "harbour office" in " ".join(rest)
    silent = msgspec.structs.replace(event, wants_reply=False)
    assert facts.on_pre_compress(silent, hook_context(step)) == ""


def test_a_paraphrased_summary_stands_for_its_session(facts):
    """`session_search` shows a model's summary where there is one, else the chosen sentences."""
    told = Told(facts)
    said = told(turn("I keep bees in Bergen."))
    for deriver, text in (("extractive", "Ada: I keep bees."), ("model", "Ada is a beekeeper.")):
        told(Derived(kind="summary", text=text, sources=(said,), deriver=deriver))
        told(Derived(kind="topic", text="bees", sources=(said,), deriver="extractive"))
        ctx = hook_context(SampleStep(99, turn("?"), ADA, SESSION))
        (session,) = facts.handle_tool_call("session_search", {"query": "bees"}, ctx)["sessions"]
        assert session["summary"]["text"] == text
