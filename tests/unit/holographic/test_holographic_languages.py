"""What a question's words are, and in which language they are read."""

from hashlib import sha256

import pytest
from holographic_feeding import feed, texts, turn
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.language.english import SILENT
from memorybus_providers.language.query import parse_question

CONTRACTED = [
    ("I'm sure I'd know", ["sure", "know"]),
    ("I\u2019m sure you\u2019ve met Ana", ["sure", "meet", "ana"]),
    ("Who won't come?", ["come"]),
    ("Haven't they said so?", ["say"]),
    ("She doesn't paint, and couldn't", ["paint"]),
    ("Where'd Ana go, and who'll drive?", ["ana", "go", "drive"]),
    ("ive heard you know whats what", ["hear", "know"]),
    ("dont you know where theyre hiding", ["know", "hide"]),
]
WHOLE = [
    ("Who won the race?", ["win", "race"]),
    ("Which haven did they reach?", ["haven", "reach"]),
    ("How much vitamin D was it?", ["vitamin", "d"]),
]


@pytest.mark.parametrize(("question", "stems"), CONTRACTED)
def test_contractions_ask_for_nothing(question, stems):
    """What is left of an English contraction is no word, and no word of another language."""
    read = parse_question(question)

    assert [term.stem for term in read.terms] == stems
    assert read.languages == ("english",)


@pytest.mark.parametrize(("question", "stems"), WHOLE)
def test_what_only_looks_like_a_contraction_is_asked_for(question, stems):
    """A word that stands for itself is no part of a contraction."""
    assert [term.stem for term in parse_question(question).terms] == stems


def test_a_contraction_names_nobody(provider):
    """A contraction names neither Will nor Don, whose words are therefore not looked for."""
    said = turn("The regatta is off", "It is on, with Will", user_name="Will", assistant_name="Bo")
    feed(provider, [said])

    assert not {"will", "won", "don"}.intersection(parse_question("Who'll, won't, don't").words)
    found = texts(provider, "Who'll say that the regatta won't be off?")
    assert sorted(found) == ["It is on, with Will", "The regatta is off"]


@pytest.mark.parametrize("asked", ["Comment s'appelle l'amie d'Ana?", "Com es diu l'amic d'Ana?"])
def test_other_languages_keep_their_apostrophes(asked):
    """What stands before an apostrophe in French or Catalan is no English contraction."""
    assert "english" not in parse_question(asked).languages[:1]
    assert "ana" in [term.word for term in parse_question(asked).terms]


def tell(provider: HolographicProvider, *told: str) -> None:
    """Say some texts, each in a session of its own."""
    for n, text in enumerate(told, start=1):
        feed(provider, [turn(text)], first=n, session=f"s{n}", root=f"s{n}")


FORMS = [
    ("When was it that Grandpa died?", "Grandpa died in May", "Die Katze und die Maus"),
    ("What dogs does she have?", "Her dog is Rex", "Die Katze und die Maus"),
    ("Which hats does she wear?", "A hat of straw", "Hunde, die bellen"),
]


@pytest.mark.parametrize(("asked", "right", "other"), FORMS)
def test_a_stop_word_is_no_form_of_another_word(asked, right, other, provider):
    """A word that a language uses for nothing is not found by one that has its stem."""
    tell(provider, right, *(f"{other} {n}" for n in range(5)))

    assert texts(provider, asked) == [right]


@pytest.mark.parametrize("asked", ["What died?", "Diesel", "poured"])
def test_a_stop_word_alone_is_no_answer(asked, provider):
    """Where nothing else is like what is asked for, stop words of other languages are not given."""
    tell(provider, "Die Katze, die schnurrt, dieser Kater", "pour nous")

    assert texts(provider, asked) == []


def test_a_stop_word_that_is_asked_for_is_found(provider):
    """What is one in another language is found by itself."""
    tell(provider, "He did not want to die", "The pour was slow")

    assert texts(provider, "Who wanted to die?") == ["He did not want to die"]
    assert texts(provider, "How slow is the pour?") == ["The pour was slow"]


def test_what_an_index_leaves_out_never_changes():
    """A store empties its index by the words with which it wrote it; other ones would damage it."""
    written = sha256(" ".join(sorted(SILENT)).encode()).hexdigest()

    assert written.startswith("1dda8c27752df9f5")
