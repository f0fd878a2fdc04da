"""Search by meaning in Postgres: vectors in pgvector, filled in beside the lanes."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from helpers.processes.waiting import wait_until
from helpers.services.embedding_server import EmbeddingServer, embedding_server
from helpers.services.models import model
from helpers.services.postgres_server import PostgresServer
from memorybus.events import Scope
from memorybus_providers.base import Fence, ProviderConfig, RecallScope
from memorybus_providers.postgres import PostgresProvider
from unit.holographic.holographic_feeding import (
    LANE,
    MINE,
    add,
    ask,
    context,
    feed,
    opened,
    remove,
    texts,
    turn,
)
from unit.holographic.meaning.meaning_feeding import await_filled as await_here

TOLD = (
    "We moved to a flat by the river last spring",
    "The doctor told me to avoid peanuts",
    "I finally sold the old station wagon",
    "Our router reboots itself at night",
    "My daughter started kindergarten in September",
)


class Abandoned(Exception):
    """Raised inside a transaction to roll it back."""


def say_and_abandon(provider: PostgresProvider, text: str) -> None:
    """Say something in a transaction that is rolled back."""
    with provider.transaction(Fence(LANE, 1)):
        provider.sync_turn(turn(text), context(2))
        raise Abandoned


@pytest.fixture
def embedder() -> Iterator[EmbeddingServer]:
    """A service that embeds."""
    with embedding_server() as server:
        yield server


@pytest.fixture
def options(
    postgres_server: PostgresServer, postgres_url: str, embedder: EmbeddingServer
) -> dict[str, str]:
    """Options of an instance with an embedder and a readers' role; skip without pgvector."""
    with psycopg.connect(postgres_url) as db:
        query = "select 1 from pg_available_extensions where name = 'vector'"
        if not db.execute(query).fetchone():
            pytest.skip("this PostgreSQL has no pgvector")
    postgres_server.role("meaning_reader")
    return {
        "url": postgres_url,
        "reader": "meaning_reader",
        "embedder": embedder.address,
        "embedder_model": "m",
        "embedder_wait": 10.0,
    }


@pytest.fixture
def meaning(options: dict[str, str], tmp_path: Path) -> Iterator[PostgresProvider]:
    """Return an open provider with lanes, and an embedder."""
    with_embedder = PostgresProvider(
        ProviderConfig(name="postgres", home=tmp_path, options=options)
    )
    with_embedder.open()
    try:
        yield with_embedder
    finally:
        with_embedder.shutdown()


def await_filled(url: str, count: int) -> None:
    """Wait until so many facts have a vector, and none waits for one."""

    def filled() -> bool:
        with psycopg.connect(url) as db:
            if db.execute("select to_regclass('memorybus.meaning_vectors')").fetchone() == (None,):
                return False
            query = (
                "select (select count(*) from memorybus.meaning_vectors),"
                " (select count(*) from memorybus.meaning_missing)"
            )
            return db.execute(query).fetchone() == (count, 0)

    wait_until(filled, f"{count} facts have a vector")


def test_a_fact_is_found_by_its_meaning(meaning, options):
    """A question that shares no word finds what means the same, of its own scope alone."""
    feed(meaning, [turn("I bought a sedan")])
    feed(meaning, [turn("The sky is blue")], first=2, session="s2", root="s2")
    feed(meaning, [turn("I got a car")], first=3, scope=Scope(agent="coder", user="bob"))
    await_filled(options["url"], 3)

    assert texts(meaning, "Which vehicle?") == ["I bought a sedan"]
    assert texts(meaning, "Which vehicle?", RecallScope("coder", "nobody")) == []
    assert meaning.report() == ""


def test_what_goes_takes_its_vector_along(meaning, options):
    """A removed entry, and an erased person, have no vector left."""
    feed(meaning, [add("I bought a sedan"), turn("I like supper")])
    await_filled(options["url"], 2)

    feed(meaning, [remove("sedan")], first=3)
    await_filled(options["url"], 1)
    assert texts(meaning, "Which vehicle?") == []
    residue = meaning.forget(MINE)
    await_filled(options["url"], 0)
    assert any("embeds" in one for one in residue.remains)


def test_facts_from_before_the_embedder_get_vectors(provider, options, tmp_path):
    """An embedder that is configured later catches up, and a rolled back fact gets no vector."""
    feed(provider, [turn("I bought a sedan")])
    later = PostgresProvider(ProviderConfig(name="postgres", home=tmp_path, options=options))
    later.open()
    try:
        assert later.progress(LANE) is not None
        await_filled(options["url"], 1)
        with pytest.raises(Abandoned):
            say_and_abandon(later, "I got a puppy")
        assert texts(later, "Which vehicle?") == ["I bought a sedan"]
        assert texts(later, "Any pet?") == []
    finally:
        later.shutdown()


def test_a_dead_embedder_holds_up_nobody(meaning, options, embedder):
    """While it refuses, words answer and lanes go on; the report says why; then it catches up."""
    embedder.refuse = 1
    feed(meaning, [turn("I bought a sedan")])

    assert texts(meaning, "What about the sedan?") == ["I bought a sedan"]
    wait_until(lambda: "fails" in meaning.report() or not embedder.refuse, "it was refused")
    await_filled(options["url"], 1)
    wait_until(lambda: meaning.report() == "", "the report is quiet again")


def test_a_small_scope_is_found_among_many_vectors(meaning, options):
    """Others' vectors, however many, take no place of one's own."""
    many = [turn(f"vehicle sedan car number{n}") for n in range(300)]
    feed(meaning, many, scope=Scope(agent="coder", user="bob"))
    feed(meaning, [turn("I bought a sedan")], first=400)
    await_filled(options["url"], 301)

    assert texts(meaning, "What do I drive?") == ["I bought a sedan"]


@pytest.mark.servers
def test_both_stores_answer_alike_by_meaning(options, tmp_path):
    """With a real model `holographic` and `postgres` rank by the same nearness."""
    embedder = {"embedder": str(model("minilm")), "embedder_wait": 10.0}
    where = {"url": options["url"], "reader": options["reader"]}
    said = [*(turn(text, f"I noted it: {text}") for text in TOLD[:3]), *map(add, TOLD[3:])]
    there = PostgresProvider(
        ProviderConfig(name="postgres", home=tmp_path, options={**where, **embedder})
    )
    there.open()
    try:
        with opened(tmp_path / "here", **embedder) as here:
            for provider in (there, here):
                feed(provider, said)
            await_filled(options["url"], 8)
            await_here(here, 8)
            for question in (
                "Which apartment is mine?",
                "Do I own a car?",
                "Which foods harm me?",
            ):
                answers = [ask(provider, question) for provider in (there, here)]
                assert answers[0]
                assert [one.text for one in answers[0]] == [one.text for one in answers[1]]
                assert [one.score for one in answers[0]] == pytest.approx(
                    [one.score for one in answers[1]], rel=0.01
                )
    finally:
        there.shutdown()
