"""The parts of search by meaning: nearness and its worth, matrices, vectors of questions."""

import math
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from helpers.processes.waiting import wait_until
from helpers.services.embedding_server import embed
from hypothesis import given
from hypothesis import strategies as st
from memorybus.errors import Unavailable
from memorybus.testing import FakeClock
from memorybus_providers.embedding import questions
from memorybus_providers.embedding.baseline import UNRELATED, baseline_of
from memorybus_providers.embedding.embedder import at_length_one
from memorybus_providers.embedding.pauses import LONGEST_PAUSE, pause_after
from memorybus_providers.embedding.vectors import MAX_BASELINE, MAX_NEAREST, Model
from memorybus_providers.holographic.meaning import vector_index
from memorybus_providers.holographic.meaning.tables import STORED_TYPE, SqliteVectorTables
from memorybus_providers.holographic.meaning.vector_index import VectorIndex
from memorybus_providers.language.words import without_words
from memorybus_providers.ranking import evidence, nearness
from memorybus_providers.ranking.evidence import WeighedFact
from memorybus_providers.ranking.nearness import Near, Spread

EAST, NORTH, BETWEEN = np.float32([[1, 0], [0, 1], [0.6, 0.8]])

SOME = Model("some", 2, 0.1)


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """Return a database with facts of nobody, and the tables of vectors."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("create table facts(id integer primary key, scope integer, content text, kind text)")
    SqliteVectorTables(db).prepare()
    yield db
    db.close()


def put(
    db: sqlite3.Connection, fact: int, scope: int, vector: np.ndarray, kind: str = "user"
) -> None:
    """Store a fact with a vector."""
    db.execute("insert into facts values (?, ?, '', ?)", (fact, scope, kind))
    stored = vector.astype(STORED_TYPE).tobytes()
    db.execute(
        "insert into meaning_vectors(fact, scope, vector) values (?, ?, ?)", (fact, scope, stored)
    )


def found(index: VectorIndex, *scopes: int) -> list[int]:
    """Return the facts of some scopes, those nearest to the east first."""
    return list(index.compare(scopes, EAST, SOME).nearest("talk"))


def test_sentences_about_nothing_in_common_share_no_word():
    """The floor of an embedder that only counts words is not raised by a word of two sentences."""
    words = Counter(re.findall(r"\w+", " ".join(UNRELATED).lower()))

    assert words.most_common(1)[0][1] == 1


def test_what_a_model_calls_near_by_chance_is_learnt():
    """The mean cosine of unrelated texts is near 0 for one model, and high for another."""
    plain = at_length_one(embed(UNRELATED).astype(np.float32))
    shifted = at_length_one(plain + np.float32(0.05))

    assert baseline_of(plain) == pytest.approx(0.0, abs=0.05)
    assert baseline_of(shifted) > 0.5


@given(chance=st.floats(-1, 1), cosines=st.lists(st.floats(-1, 1), min_size=2))
def test_nearness_goes_from_chance_to_the_same(chance, cosines):
    """It is 0 at the model's chance, 1 at the same text, and never falls in between."""
    model = Model("any", 2, chance)
    near = [model.nearness(cosine) for cosine in sorted(cosines)]

    assert near == sorted(near)
    assert model.nearness(1.0) == pytest.approx(1.0)
    assert model.nearness(min(chance, MAX_BASELINE)) == 0


def test_only_the_scopes_asked_for_are_compared(db):
    """A vector of another scope is not found, and not even read."""
    put(db, 1, 1, EAST)
    put(db, 2, 2, EAST)
    index = VectorIndex(db)

    assert found(index, 1) == [1]
    assert found(index, 1, 2) == [2, 1]
    assert found(index) == []


def test_a_scope_in_memory_follows_what_is_added_and_removed(db):
    """The matrix in memory is that of the tables, also when a row number is given again."""
    index = VectorIndex(db)
    put(db, 1, 1, EAST)
    put(db, 2, 1, BETWEEN)
    assert found(index, 1) == [1, 2]
    put(db, 3, 1, NORTH)
    assert found(index, 1) == [1, 2, 3]
    db.execute("delete from facts where id = 1")
    assert found(index, 1) == [2, 3]
    put(db, 1, 2, EAST)
    assert found(index, 1) == [2, 3]
    for fact in range(10, 10 + 3 * vector_index._MAX_BLOCKS):
        put(db, fact, 1, EAST)
        assert index.compare([1], EAST, SOME).nearness([fact])[fact].nearness == 1.0


def test_memory_is_bounded(db, monkeypatch):
    """Scopes that were asked longest ago are forgotten, and read again (G10)."""
    monkeypatch.setattr(vector_index, "MAX_KEPT_BYTES", 2 * EAST.nbytes)
    index = VectorIndex(db)
    for scope in range(1, 6):
        put(db, scope, scope, EAST)
        assert found(index, scope) == [scope]

    assert len(index._scopes) == 2
    assert found(index, 1) == [1]


def test_only_the_nearest_of_many_stand_for_selection(db):
    """The best come first, and no more than are looked at (G10)."""
    for fact, angle in enumerate(np.linspace(0.3, 1.4, 3 * MAX_NEAREST), start=1):
        put(db, fact, 1, np.float32([np.cos(angle), np.sin(angle)]))

    assert found(VectorIndex(db), 1) == list(range(1, MAX_NEAREST + 1))


def test_long_answers_leave_talk_its_places(db):
    """However many pieces of answers are nearer, the nearest facts of talk are found (G10)."""
    put(db, 1, 1, BETWEEN)
    for fact in range(2, 2 + 2 * MAX_NEAREST):
        put(db, fact, 1, EAST, "answer")
    comparison = VectorIndex(db).compare([1], EAST, SOME)

    assert comparison.nearest("talk") == [1]
    assert len(comparison.nearest("answers")) == MAX_NEAREST


def test_every_fact_that_has_a_vector_can_be_compared(db):
    """What words found is compared as well, however far it is."""
    for fact, vector in enumerate((EAST, BETWEEN, NORTH), start=1):
        put(db, fact, 1, vector)
    comparison = VectorIndex(db).compare([1], EAST, SOME)

    near = comparison.nearness([3, 2, 99])

    assert {fact: one.nearness for fact, one in near.items()} == {
        2: pytest.approx((0.6 - 0.1) / 0.9, abs=0.001), 3: 0.0
    }  # fmt: skip
    assert near[2].standing > 0 > near[3].standing
    assert comparison.nearness([]) == {}


def test_pauses_grow_to_a_bound():
    """After each failure in a row the next request waits twice as long (G10)."""
    assert [pause_after(n) for n in (1, 2, 3)] == [1.0, 2.0, 4.0]
    assert pause_after(10_000) == LONGEST_PAUSE


def test_questions_do_not_pile_up():
    """While the embedder hangs, a few questions wait for it and the others do without (G10)."""
    gate = threading.Event()

    def embed_slowly(text: str) -> np.ndarray:
        gate.wait(30)
        return EAST

    vectors = questions.QuestionVectors(embed_slowly, FakeClock())
    asked = [vectors.ask(f"{n}?") for n in range(20)]
    without = [one for one in asked if one._settled.is_set()]
    assert 20 - questions.MAX_WAITING - 1 <= len(without) < 20
    gate.set()
    waited = [one for one in asked if one not in without]
    assert all(one.wait(30) is not None for one in waited)
    vectors.close()


def test_a_failing_embedder_is_left_alone_for_a_while():
    """After a failure no question is sent until the pause is over; then one is again."""
    clock, tried = FakeClock(), list[str]()

    def fail(text: str) -> np.ndarray:
        tried.append(text)
        raise Unavailable("down")

    vectors = questions.QuestionVectors(fail, clock)
    assert vectors.ask("a?").wait(30) is None
    assert vectors.ask("b?").wait(30) is None
    assert tried == ["a?"]
    clock.sleep(1.0)
    vectors.ask("b?")
    wait_until(lambda: tried == ["a?", "b?"], "it is asked again")
    vectors.close()


@given(
    st.builds(Spread, st.integers(0, 10_000), st.floats(-0.5, 1), st.floats(0, 0.5)),
    st.lists(st.floats(-1, 1), min_size=1),
)
def test_a_nearer_fact_stands_out_further(spread, near):
    """However few facts a scope has, each nearness has a standing, in the order of nearness."""
    found = [spread.near(one) for one in sorted(near)]

    assert all(math.isfinite(one.standing) and 0 <= one.nearness <= 1 for one in found)
    assert [one.standing for one in found] == sorted(one.standing for one in found)


def test_standing_is_measured_by_what_is_usual_in_the_scope():
    """Where all facts are rather near to a question, being rather near is worth nothing."""
    strange, alike = Spread(1_000, 0.1, 0.1), Spread(1_000, 0.5, 0.1)

    assert strange.near(0.5).standing == pytest.approx(4, abs=0.1)
    assert alike.near(0.5).standing == pytest.approx(0, abs=0.1)


def test_meaning_is_worth_a_share_of_what_is_asked():
    """A fact gains by how far it stands out, within bounds."""
    middle = (nearness.FULL_STANDING + nearness.LEAST_STANDING) / 2
    standings = {1: 9.0, 2: nearness.FULL_STANDING, 3: middle, 4: nearness.LEAST_STANDING, 5: -3.0}
    near = {fact: Near(0.5, standing) for fact, standing in standings.items()}

    most = nearness.MAX_GAIN * 5
    assert nearness.meaning_amounts(near, 5.0) == {1: most, 2: most, 3: pytest.approx(most / 2)}


def test_meaning_is_a_facts_own():
    """What speaks for a fact by its meaning says nothing of what stands around it."""
    places = [WeighedFact(1, (1, 0)), WeighedFact(2, (1, 1))]

    assert evidence.weights(places, {"car": 1.0}, {1: 3.0}) == {1: evidence.Weight(0, 3.0, 0, 3.0)}


@pytest.mark.parametrize(
    ("text", "names", "left"),
    [
        ("What did Ann's dog eat, Bob?", {"ann", "bob"}, "What did dog eat, ?"),
        ("Wo wohnt José?", {"jose"}, "Wo wohnt ?"),
        ("Ann\u2019s car", {"ann"}, "car"),
        ("Ann, Bob?", {"ann", "bob"}, "Ann, Bob?"),
        ("An  annual car", {"ann"}, "An annual car"),
        ("as  it is", set(), "as  it is"),
    ],
)
def test_words_are_left_out_of_a_text(text, names, left):
    """They go with what marks the possessor; a text of nothing else stays whole."""
    assert without_words(text, names) == left
