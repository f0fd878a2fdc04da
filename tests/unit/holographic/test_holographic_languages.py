"""What a question's words are, and that questions in any language find what answers them."""

from hashlib import sha256

import pytest
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


@pytest.mark.parametrize("asked", ["Comment s'appelle l'amie d'Ana?", "Com es diu l'amic d'Ana?"])
def test_other_languages_keep_their_apostrophes(asked):
    """What stands before an apostrophe in French or Catalan is no English contraction."""
    assert "english" not in parse_question(asked).languages[:1]
    assert "ana" in [term.word for term in parse_question(asked).terms]


def test_what_an_index_leaves_out_never_changes():
    """A store empties its index by the words with which it wrote it; other ones would damage it."""
    written = sha256(" ".join(sorted(SILENT)).encode()).hexdigest()

    assert written.startswith("1dda8c27752df9f5")
