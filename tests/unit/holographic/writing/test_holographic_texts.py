"""Hostile and extreme texts are stored whole, or not at all if blank."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from memorybus_providers.language.languages import stems_of
from memorybus_providers.language.words import identifiers, tokens
from memorybus_providers.ranking.facts import (
    MAX_PASSAGE_CHARS,
    NAMES_PER_FACT,
    names_in,
    passages,
)
from unit.holographic.holographic_feeding import (
    add,
    check_index,
    context,
    feed,
    stored,
    texts,
    turn,
)


@pytest.mark.parametrize("text", ["a\0heron\0", "héron 鷺 heron", "heron\u202e", "heron\ufeff"])
def test_odd_characters_come_back_as_they_were(text, provider):
    """NUL, other scripts and invisible characters are kept verbatim."""
    feed(provider, [turn(text), add(text)])

    assert texts(provider, "heron") == [text]
    assert [row[0] for row in stored(provider)] == [text, text]
    check_index(provider)


def test_lone_surrogates_become_replacement_characters(provider):
    """What UTF-8 cannot hold is replaced, wherever it stands."""
    bad = "heron \ud800"
    feed(provider, [turn(bad, user_name=bad), add(bad)], session=bad)
    provider.handle_tool_call(
        "memory_add", {"content": bad, "category": bad, "tags": [bad]}, context(9)
    )

    assert texts(provider, "heron") == ["heron \ufffd"]


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"])
def test_a_blank_text_is_no_fact(text, provider):
    """Nothing said, nothing stored."""
    feed(provider, [turn(text, text), add(text)])

    assert stored(provider) == []


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("word " * 200_000, "heron word"),
        ("x" * 1_000_000, "heron"),
        ("\n\n" * 10 + "y\n" * 9_999, "heron y"),
    ],
)
def test_a_huge_text_is_kept_in_passages(text, question, provider):
    """A megabyte is stored and recalled in pieces that fit a budget."""
    feed(provider, [turn("A heron", text), add(text)])

    recalled = texts(provider, question)
    assert recalled
    assert sum(map(len, recalled)) <= 2_000


@given(st.text("ab. \n", max_size=5_000))
def test_passages_lose_only_blanks_at_their_edges(text):
    """Every piece is a verbatim part, in order, within the bound; nothing else is dropped."""
    pieces = passages(text)

    assert all(len(piece) <= MAX_PASSAGE_CHARS and piece in text for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_a_passage_ends_where_a_reader_would_pause():
    """A cut falls on a paragraph before a line, a sentence, a word."""
    half = "w" * (MAX_PASSAGE_CHARS // 2 + 100)

    assert passages(f"{half}\n\nmore. {half}") == [half, f"more. {half}"]
    assert passages(f"{half}. more {half}") == [f"{half}.", f"more {half}"]


def test_a_short_text_is_never_cut():
    """Up to the bound a text is one passage, blanks included."""
    text = " a\n\n" * (MAX_PASSAGE_CHARS // 4)

    assert passages(text) == [text]


def test_names_are_found_inside_sentences():
    """Capitalised runs count as names, the first word of a sentence does not."""
    assert names_in("We met Carla Bruni, Bob and the crew. Later with Bob. Then home") == [
        "Carla Bruni",
        "Bob",
    ]
    assert len(names_in("we met " + " and ".join(f"Bob{n}" for n in range(99)))) == NAMES_PER_FACT


@pytest.mark.parametrize(
    ("form", "base"),
    [
        ("went", "go"),
        ("bought", "buy"),
        ("children", "child"),
        ("written", "write"),
        ("ran", "run"),
        ("paintings", "painted"),
        ("lives", "lived"),
    ],
)
def test_forms_of_a_word_share_a_stem(form, base):
    """A regular or irregular form has the stem of its base form."""
    assert stems_of(form, ["english"]) == stems_of(base, ["english"])


@given(st.text(max_size=200))
def test_tokens_are_safe_in_the_index(text):
    """A token holds nothing that the full-text index would cut it at."""
    for token in tokens(text):
        assert token
        assert all(sign.isalnum() or sign in "!_./" or sign > "\x7f" for sign in token)


@given(st.text(alphabet="abZ09_./ é?", max_size=30))
@example("getUserToken")
@example("auth_service.py")
@example("E1234")
@example("see a/b")
def test_an_index_holds_each_identifier(text):
    """Whatever looks like code is among a text's tokens, beside its words."""
    found, held = identifiers(text), tokens(text)

    assert held[len(held) - len(found) :] == found
