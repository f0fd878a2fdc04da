"""A prompt that tells a story and asks one thing in it is answered by what it asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus_providers.base import RecallContext
from memorybus_providers.builtin.entries import matched_words
from memorybus_providers.language.query import parse_question
from memorybus_providers.language.sentences import split_prompt
from unit.holographic.holographic_feeding import MINE, feed, texts, turn

STORY = "The kids were loud all day and the soup boiled over. We watched the regatta in the rain."


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        (f"{STORY} Where does my sister live? Good night.", "Where does my sister live?"),
        (f"{STORY} remind me to call the vet", "remind me to call the vet"),
        (f"{STORY}\nwo wohnt meine Schwester?", "wo wohnt meine Schwester?"),
        (
            "今天很累。我住在哪里？" + "昨天下雨了，我们在家里看电影，吃了很多东西。" * 4,
            "我住在哪里？",
        ),
        (f"{STORY} When does Dr. Weber open?", "When does Dr. Weber open?"),
        (STORY, STORY),
        ("Tired. Where does my sister live?", "Tired. Where does my sister live?"),
    ],
)
def test_what_a_prompt_asks_is_told_from_what_it_tells(prompt, asked):
    """Sentences with a question mark ask, or else those that begin so; a short prompt is whole."""
    assert split_prompt(prompt).asked == asked


@pytest.mark.parametrize(
    "prompt",
    [
        "Write an email to our landlord that the heating fails",
        "Could you please write to our landlord that the heating fails?",
    ],
)
def test_a_request_finds_no_other_text_that_was_to_be_written(provider, prompt):
    """The word with which a request begins is no search term, unless there is no other."""
    feed(provider, [turn("Our landlord is Frau Novak.")])
    feed(provider, [turn("Write a regex for dates.")], first=2, session="s2")

    assert texts(provider, prompt) == ["Our landlord is Frau Novak."]
    assert texts(provider, "write") == ["Write a regex for dates."]


KNOWN = "My landlord Nadia Hale likes hale@example.org best"


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("Email my landlord that the heating is broken", [KNOWN]),
        ("arrange a trial appointment with Nadia on Saturday, mind the parking", [KNOWN]),
        ("arrange a trial appointment with Nadia and Osgood, mind the parking", []),
        ("arrange a trial appointment on Saturday, mind the parking, who likes it", []),
        ("Email my plumber that the heating is broken", []),
    ],
)
def test_known_names_are_answer_enough(prompt, found, provider):
    """However many words nobody wrote: a fact that contains a name fits, if all names are known."""
    feed(provider, [turn(KNOWN, "Noted")])
    feed(provider, [turn(f"It rained {n} hours", "Oh dear") for n in range(99)], first=2)
    assert [one for one in texts(provider, prompt) if one == KNOWN] == found


@given(st.text(), st.text(), st.sampled_from([" ", "\n", ". ", "? "]))
def test_no_word_of_a_prompt_is_lost(first, second, between):
    """Every letter of a prompt is asked or stands beside it."""
    prompt = f"{first}{between}{STORY}{between}{second}"
    asked, aside = split_prompt(prompt)
    assert sorted(filter(str.isalnum, asked + aside)) == sorted(filter(str.isalnum, prompt))


@pytest.mark.parametrize(
    ("asked", "weight"),
    [
        ("why?", 1.0),
        ("the boat?", 1 / 4),
        ("whose red boat?", 1 / 9),
        ("is Ana's boat red?", 1 / 16),
    ],
)
def test_the_more_a_question_says_the_less_counts_what_is_beside_it(asked, weight):
    """A question without a word is about what was just told; code counts wherever it stands."""
    terms = {term.stem: term.weight for term in parse_question(asked, "a harbour, E1234").terms}
    assert terms["harbour"] == pytest.approx(weight)
    assert terms["1234"] == 1.0
    assert terms.get("boat", 1.0) == 1.0


def test_the_question_in_a_story_is_answered(provider):
    """A fact that holds many words of the story does not outrank one that answers the question."""
    feed(
        provider,
        [
            turn("My sister Ana lives in Porto since the spring"),
            *(turn(f"The soup boiled over, the kids were loud, day {day}") for day in range(9)),
            turn("We watched the regatta all day, in the rain"),
        ],
    )
    assert texts(provider, f"{STORY} {STORY} Where does my sister live? {STORY}")[0].startswith(
        "My sister Ana"
    )


def test_the_words_of_a_question_behind_a_long_story_are_told(provider):
    """Why a fact was found is read from the prompt as finding it was."""
    fact = "My sister Ana moved to Porto"
    feed(provider, [turn(fact), turn("We watched the regatta all day, in the rain")])
    story = " ".join(f"Word{n} and word{n + 1} again." for n in range(0, 120, 2))
    prompt = f"{story} Where did my sister Ana move?"

    (found, *_) = provider.prefetch(prompt, RecallContext(MINE, explain=True))
    assert found.why is not None
    assert (found.text, found.why.words) == (fact, ("sister", "Ana", "moved"))
    assert matched_words(fact, prompt) == ("sister", "Ana", "moved")
