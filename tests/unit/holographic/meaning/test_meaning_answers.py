"""Answers by meaning, from a real server that embeds deterministically."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.services.embedding_server import EmbeddingServer, embedding_server
from memorybus.events import Scope, TurnCompleted
from memorybus_providers.base import RecallContext, RecallScope
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import (
    AT,
    MINE,
    add,
    ask,
    feed,
    opened,
    shown,
    texts,
    turn,
)
from unit.holographic.meaning.meaning_feeding import await_filled, embedding

PARAPHRASES = (
    ("Where does she live?", "Ann has an apartment near the old mill"),
    ("Does he have a pet?", "Our terrier barks at night"),
    ("What is her job?", "Mia is a nurse"),
    ("What do you drive?", "I bought a sedan"),
    ("What did they eat?", "We had lentils for supper"),
    ("Were you ill?", "I stayed in bed with the flu"),
    ("Who is his spouse?", "Tom brought his wife along"),
    ("What is she afraid of?", "Nothing frightens Eva but spiders"),
)
"""Questions, and the facts that answer them without a common word."""


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    """Return an embedder."""
    with embedding_server() as server:
        yield server


@pytest.fixture
def provider(tmp_path: Path, server: EmbeddingServer) -> Iterator[HolographicProvider]:
    """Return an open provider with that embedder."""
    with embedding(tmp_path, server) as provider:
        yield provider


def test_a_paraphrase_finds_what_shares_no_word_with_it(provider):
    """A question is answered by the fact that means the same, before all others."""
    feed(provider, [add(fact) for _, fact in PARAPHRASES])
    await_filled(provider, len(PARAPHRASES))

    first = {question: texts(provider, question)[:1] for question, _ in PARAPHRASES}

    assert first == {question: [fact] for question, fact in PARAPHRASES}


def test_words_alone_find_none_of_them(tmp_path):
    """The paraphrases of the test before are none that words would answer."""
    with opened(tmp_path) as plain:
        feed(plain, [add(fact) for _, fact in PARAPHRASES])

        assert [texts(plain, question) for question, _ in PARAPHRASES] == [[]] * len(PARAPHRASES)


def test_the_tool_searches_by_meaning_too(provider):
    """What a model searches for is found as what is recalled."""
    feed(provider, [turn("I bought a sedan", "A red one?")])
    await_filled(provider, 2)

    assert [fact["text"] for fact in shown(provider, "vehicle")][:1] == ["I bought a sedan"]


def test_only_what_the_person_said_is_near_if_that_is_asked(provider):
    """`about` holds for facts that were found by meaning."""
    said = TurnCompleted(
        user="I bought a sedan", assistant="I got a car as well", user_name="Ann",
        assistant_name="Bob",
    )  # fmt: skip
    feed(provider, [said])
    await_filled(provider, 2)

    with provider.opened.reading(MINE, seconds=5) as search:
        found = search.answer("vehicle", MINE, about="Bob", now=AT)

    assert [scored.fact.content for scored in found] == ["I got a car as well"]


def test_another_scope_is_never_seen(provider, server):
    """The nearest fact of all stays unseen if it is another person's."""
    feed(provider, [add("Our terrier barks")], scope=Scope("coder", "eve"))
    feed(provider, [add("I bought a sedan")], first=2)
    await_filled(provider, 2)

    assert texts(provider, "Does she have a pet?") == []
    assert texts(provider, "Does she have a pet?", RecallScope("coder", "eve")) == [
        "Our terrier barks"
    ]


def test_somebody_who_asks_is_told_how_near_it_is(provider):
    """An explained answer says what its meaning brought."""
    feed(provider, [add("I bought a sedan")])
    await_filled(provider, 1)

    (found,) = provider.prefetch("Which vehicle?", RecallContext(MINE, explain=True))

    assert found.why is not None
    assert found.why.words == ()
    assert found.why.meaning is not None
    assert 0 < found.why.meaning <= 1
    assert found.why.parts["meaning"] > 0


def test_what_comes_later_is_near_too(provider):
    """A fact that gets its vector after a first answer is in the next."""
    feed(provider, [add("We had lentils for supper")])
    await_filled(provider, 1)
    assert texts(provider, "Which vehicle?") == []

    feed(provider, [add("I bought a sedan")], first=2)
    await_filled(provider, 2)

    assert texts(provider, "Which vehicle?") == ["I bought a sedan"]


def test_a_question_is_embedded_once(provider, server):
    """The vector of a question that was asked before is remembered."""
    feed(provider, [add("I bought a sedan")])
    await_filled(provider, 1)

    for _ in range(3):
        ask(provider, "Which vehicle?")

    assert server.asked.count("Which vehicle?") == 1


def test_a_model_gets_what_it_wants_before_texts(tmp_path, server):
    """Models that tell questions from passages by a prefix get it."""
    options = {"embedder_question": "query: ", "embedder_text": "passage: "}
    with embedding(tmp_path, server, **options) as provider:
        feed(provider, [add("I bought a sedan")])
        await_filled(provider, 1)
        ask(provider, "Which vehicle?")

    assert "passage: I bought a sedan" in server.asked
    assert "query: Which vehicle?" in server.asked


def test_the_whole_prompt_is_embedded(provider, server):
    """What stands beside the question of a prompt is part of its meaning."""
    feed(provider, [turn("I bought a sedan", "Nice")])
    await_filled(provider, 2)
    prompt = "I am at the garage. Which vehicle is mine?"
    ask(provider, prompt)

    assert prompt in server.asked


def test_names_of_speakers_are_no_part_of_a_meaning(provider, server):
    """A question is embedded without them: who speaks is known, and hardly says the own name."""
    said = TurnCompleted(
        user="I bought a sedan", assistant="Nice", user_name="Ann Lee", assistant_name="Bob"
    )
    feed(provider, [said])
    await_filled(provider, 2)

    assert texts(provider, "Which is Ann's vehicle, Bob?")[:1] == ["I bought a sedan"]
    assert "Which is vehicle, ?" in server.asked
    assert "Which is Ann's vehicle, Bob?" not in server.asked


def test_a_fact_that_words_find_gains_by_its_meaning(provider):
    """Of two facts with the same words the one that means what is asked is first."""
    facts = ["The old one is my sedan", "The old one is my bucket", "Our terrier likes the car"]
    feed(provider, [add(fact) for fact in facts])
    await_filled(provider, len(facts))

    assert texts(provider, "Which vehicle is old?")[0] == facts[0]
