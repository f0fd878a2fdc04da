"""Search by meaning with a real server that embeds, also if it is dead, slow or another one."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.processes.forked import await_no_filler
from helpers.processes.stalls import MARGIN
from helpers.processes.waiting import wait_until
from helpers.services.embedding_server import EmbeddingServer, embedding_server
from memorybus.errors import ConfigError, MissingProvider, Unavailable, install_command
from memorybus.events import Scope, TurnCompleted
from memorybus_providers.base import ProviderConfig, RecallContext, RecallScope
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.registry import create
from unit.holographic.holographic_feeding import (
    AT,
    MINE,
    add,
    ask,
    context,
    feed,
    opened,
    shown,
    texts,
    turn,
)
from unit.holographic.meaning.meaning_feeding import await_filled, embedding, vectors

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


def test_a_paraphrase_finds_what_shares_no_word_with_it(provider, tmp_path):
    """A question is answered by the fact that means the same; by words alone none would be."""
    with opened(tmp_path / "plain") as plain:
        for one in (provider, plain):
            feed(one, [add(fact) for _, fact in PARAPHRASES])
        await_filled(provider, len(PARAPHRASES))

        for question, fact in PARAPHRASES:
            assert texts(provider, question)[:1] == [fact]
            assert texts(plain, question) == []


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


SEDAN = "I bought a sedan"


def test_a_dead_embedder_is_told_and_caught_up(tmp_path, server):
    """While it fails, words answer, and the report says what is missing and why."""
    server.refuse = 1
    with embedding(tmp_path, server) as provider:
        feed(provider, [add(SEDAN), add("We had lentils for supper")])

        wait_until(lambda: "503" in provider.report(), "the failure is told")
        assert provider.report().startswith("2 of 2 facts have no vector yet; ")
        assert texts(provider, "sedan") == [SEDAN]
        await_filled(provider, 2)
        assert texts(provider, "Which vehicle?") == [SEDAN]


def test_nobody_waits_for_a_slow_embedder(tmp_path, server):
    """An answer is there within its bound, by words; a lane does not wait at all."""
    server.gate.clear()
    with embedding(tmp_path, server, embedder_wait=0.05) as provider:
        began = time.monotonic()
        feed(provider, [add(SEDAN)])
        assert texts(provider, "sedan") == [SEDAN]
        assert time.monotonic() - began < 0.05 + MARGIN
        server.gate.set()
        await_filled(provider, 1)
        server.gate.clear()

        began = time.monotonic()
        assert texts(provider, "Which vehicle?") == []
        assert time.monotonic() - began < 0.05 + MARGIN

        server.gate.set()
        found = wait_until(lambda: texts(provider, "Which vehicle?"), "the late vector serves")
        assert found == [SEDAN]
    server.gate.set()


def test_shutdown_does_not_wait_for_an_embedder(tmp_path, server):
    """An instance ends though a request is under way, and nothing is written afterwards."""
    server.gate.clear()
    with embedding(tmp_path, server) as provider:
        feed(provider, [add(SEDAN)])
        wait_until(lambda: vectors(provider) == (1, 0), "the queue is there")
        began = time.monotonic()
    assert time.monotonic() - began < 1.0 + MARGIN
    server.gate.set()
    with opened(tmp_path) as plain:
        assert vectors(plain) == (1, 0)


@pytest.mark.parametrize("changed", [{"model": "another"}, {"embedder_text": "passage: "}])
def test_vectors_of_another_model_are_never_compared(tmp_path, server, changed):
    """After a change of the model, or of what it is given, words answer; the remedy is told."""
    with embedding(tmp_path, server) as provider:
        feed(provider, [add(SEDAN)])
        await_filled(provider, 1)
    with embedding(tmp_path, server, **changed) as provider:
        feed(provider, [add("We had lentils for supper")], first=2)

        wait_until(provider.report, "the change is told")
        assert "memorybus rebuild holographic" in provider.report()
        assert "concepts" in provider.report()
        assert texts(provider, "Which vehicle?") == []
        assert texts(provider, "sedan") == [SEDAN]
        assert vectors(provider) == (1, 1)


def test_a_model_of_another_size_is_told(tmp_path, server):
    """Vectors of another size under the same name are not stored."""
    with embedding(tmp_path, server) as provider:
        feed(provider, [add(SEDAN)])
        await_filled(provider, 1)
        server.size = 64
        feed(provider, [add("We had lentils for supper")], first=2)

        wait_until(lambda: "64" in provider.report(), "the size is told")
        assert vectors(provider) == (1, 1)
        assert texts(provider, "Which vehicle?") == []


def test_a_text_that_is_refused_holds_up_no_other(tmp_path, server):
    """What the embedder refuses has no vector for good; all else gets one."""
    server.refused = frozenset({"Our terrier barks"})
    with embedding(tmp_path, server) as provider:
        feed(provider, [add("Our terrier barks"), add(SEDAN)])
        await_filled(provider, 2)

        assert texts(provider, "Which vehicle?") == [SEDAN]
        assert texts(provider, "Any pet?") == []
        assert texts(provider, "terrier") == ["Our terrier barks"]


def test_what_is_forgotten_leaves_no_vector(tmp_path, server):
    """A vector goes with its fact, by whatever way that goes."""
    with embedding(tmp_path, server) as provider:
        feed(provider, [turn(SEDAN), add("Our terrier barks")])
        await_filled(provider, 2)
        assert texts(provider, "Which vehicle?") == [SEDAN]
        with provider.opened.writing(in_order=True):
            provider.retract([context(1).event_id], context(9))

        assert vectors(provider) == (0, 1)
        assert texts(provider, "Which vehicle?") == []


def test_facts_from_before_the_option_are_filled_in(tmp_path, server):
    """An embedder that is configured later gets all facts that are there."""
    with opened(tmp_path) as plain:
        feed(plain, [add(SEDAN), turn("Our terrier barks", "Good dog")])
    with embedding(tmp_path, server) as provider:
        provider.progress("p00")
        await_filled(provider, 3)

        assert texts(provider, "Which vehicle?") == [SEDAN]


def test_an_instance_without_lanes_fills_nothing(tmp_path, server):
    """Who only answers asks for vectors of questions alone."""
    with embedding(tmp_path, server) as provider:
        feed(provider, [add(SEDAN)])
        await_filled(provider, 1)
        server.asked.clear()
        with embedding(tmp_path, server) as answering:
            assert texts(answering, "Which vehicle?") == [SEDAN]

    assert server.asked == ["Which vehicle?"]


def test_the_digest_is_of_the_facts_alone(tmp_path, server):
    """Two instances with the same facts are equal with and without vectors (G8)."""
    with embedding(tmp_path / "a", server) as near, opened(tmp_path / "b") as plain:
        for provider in (near, plain):
            feed(provider, [add(SEDAN), turn("Our terrier barks", "Good dog")])
        await_filled(near, 3)

        assert list(near.digest()) == list(plain.digest())


def test_a_key_is_sent_and_never_told(tmp_path, server, monkeypatch):
    """The variable's value goes to the service; an error that repeats it is masked."""
    monkeypatch.setenv("EMBEDDER_TEST_KEY", "sk-secret-1")
    server.refuse = 1
    with embedding(tmp_path, server, embedder_key="EMBEDDER_TEST_KEY") as provider:
        feed(provider, [add(SEDAN)])
        wait_until(lambda: "503" in provider.report(), "the failure is told")

        assert "sk-secret-1" not in provider.report()
        assert server.keys[0] == "Bearer sk-secret-1"


def test_a_key_that_is_not_there_is_told_at_once(tmp_path, server):
    """A variable that does not exist keeps the instance from opening, by name."""
    with (
        pytest.raises(Unavailable, match="EMBEDDER_TEST_NO_KEY"),
        embedding(tmp_path, server, embedder_key="EMBEDDER_TEST_NO_KEY"),
    ):
        pass


@pytest.mark.parametrize(
    ("embedder", "module", "extra"),
    [
        ("http://127.0.0.1:9/v1", "urllib3", "embeddings"),
        ("/models/e5", "onnxruntime", "local-embeddings"),
        ("http://127.0.0.1:9/v1", "numpy", "embeddings"),
    ],
)
def test_a_missing_library_is_told_with_its_extra(tmp_path, monkeypatch, embedder, module, extra):
    """Who has not installed what the embedder needs is told what to type."""
    await_no_filler()  # NumPy crashes if it is hidden while a thread of an earlier test uses it
    for name in [
        name
        for name in sys.modules
        if any(
            part in name
            for part in ("holographic.meaning", "providers.embedding", "providers.remote")
        )
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with (
        pytest.raises(MissingProvider, match=re.escape(install_command(extra))),
        opened(tmp_path, embedder=embedder, embedder_model="m"),
    ):
        pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"embedder": "http://127.0.0.1:9/v1"}, "embedder_model"),
        ({"embedder": 3}, "embedder"),
        ({"embedder_timeout": 0}, "embedder_timeout"),
        ({"embedder_wait": -1.0}, "embedder_wait"),
        ({"embedder_batch": 0}, "embedder_batch"),
        ({"embedders": "x"}, "did you mean 'embedder'"),
    ],
)
def test_wrong_options_are_told(tmp_path, options, said):
    """An option that cannot work is refused before anything is opened."""
    config = ProviderConfig(name="holographic", home=tmp_path, options=options)

    with pytest.raises(ConfigError, match=said):
        create("holographic", config)


def test_without_an_embedder_nothing_of_it_is_loaded(tmp_path):
    """An instance without the option imports neither numpy nor urllib3, and makes no table."""
    program = (
        "import json, sys; sys.path[:0] = json.loads(sys.argv[1]); from pathlib import Path\n"
        "from holographic_feeding import add, feed, opened, texts\n"
        "with opened(Path(sys.argv[2])) as provider:\n"
        "    feed(provider, [add('I bought a sedan')])\n"
        "    found = texts(provider, 'sedan')\n"
        "print(json.dumps([found, [m for m in ('numpy', 'urllib3') if m in sys.modules]]))\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program, json.dumps(sys.path), str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout) == [[SEDAN], []]


def test_answers_without_vectors_are_those_of_words(tmp_path, server):
    """With an embedder that has given nothing yet, the answer is that of words, part by part."""
    told = [turn("I bought a sedan", "A red sedan?"), add("Ann likes the red one")]
    server.refuse = 1_000
    with embedding(tmp_path / "a", server) as near, opened(tmp_path / "b") as plain:
        for provider in (near, plain):
            feed(provider, told)

        assert ask(near, "Which red sedan?") == ask(plain, "Which red sedan?")
