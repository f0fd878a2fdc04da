"""Questions become safe searches: any text is a question, also one within a story."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memorybus_providers.base import RecallContext, RecallScope
from memorybus_providers.builtin.entries import matched_words
from memorybus_providers.language.query import (
    MAX_MATCHES,
    MAX_TERMS,
    MAX_WORDS,
    Term,
    any_token_expression,
    choose_terms,
    parse_question,
)
from memorybus_providers.language.sentences import split_prompt
from unit.holographic.holographic_feeding import (
    AT,
    DAY,
    ME,
    MINE,
    add,
    context,
    feed,
    opened,
    remove,
    texts,
    turn,
)

OPERATORS = ["AND", "OR", "NOT", "NEAR", "(", ")", '"', "*", "-", "+", "^", ":", "{", "}", ",", "'"]
hostile = st.lists(
    st.one_of(st.sampled_from(OPERATORS), st.text(max_size=8), st.just("heron")), max_size=12
).map(" ".join)


@settings(max_examples=60)
@given(st.lists(st.one_of(st.text(), hostile), min_size=1, max_size=10))
@pytest.mark.slow(reason="generates questions to a real store")
def test_any_text_is_a_harmless_question(questions):
    """No text raises, as a question or as something said, and the facts stay findable."""
    with TemporaryDirectory() as home, opened(Path(home)) as provider:
        feed(provider, [turn("A heron by the pond"), *(turn(text, text) for text in questions)])
        for question in questions:
            texts(provider, question)
            provider.handle_tool_call("memory_search", {"query": question}, context(999))

        assert "A heron by the pond" in texts(provider, "heron pond", budget=100_000)


@pytest.mark.parametrize(
    "question",
    [
        'content:"heron"', "heron*", "NEAR(heron pond, 2)", '"heron', "heron AND NOT pond",
        "^heron", "-heron", "{content} : heron", "heron'); drop table facts; --", "(heron",
        "HERON?", "herons", "hèron", "the\0heron", "heron \ud800",
    ],
)  # fmt: skip
def test_operators_are_only_punctuation(question, provider):
    """A question full of the search's own syntax finds what its words would."""
    feed(provider, [turn("A heron by the pond", "Well seen"), turn("Nothing else")])

    assert texts(provider, question)[0] == "A heron by the pond"


@pytest.mark.parametrize("question", ["", " \n"])
def test_a_blank_question_gets_what_matters_most(question, provider):
    """Where nothing is asked the profile comes first, then what was kept, then what was said."""
    said = [turn("A heron by the pond", "Well seen"), turn("The boat is blue", "I see")]
    kept = [add("The key is under the pot"), add("Speaks Polish", "user")]
    feed(provider, [*said, *kept])

    found = texts(provider, question)
    assert found[:2] == ["Speaks Polish", "The key is under the pot"]
    assert set(found[2:]) == {"The boat is blue", "A heron by the pond"}


def test_what_was_said_last_is_known_by_its_time(provider):
    """The newest days come first, whenever they came to the store and whatever else did."""
    days = {"resumed": 1, "fourth": 4, "third": 3, "second": 2, "oldest": 0}
    for n, (session, day) in enumerate(days.items()):
        said = turn(f"In the {session} session")
        feed(provider, [said], first=9 * n + 1, session=session, root=session, at=AT + day * DAY)
    for n in range(3):  # sessions of which nothing was said, as a note's is
        feed(provider, [remove("no such")], first=90 + n, session=f"e{n}", root=f"e{n}")
    more = turn("Back in the resumed session")
    feed(provider, [more], first=99, session="resumed", root="resumed", at=AT + 5 * DAY)

    assert texts(provider, "") == [
        "Back in the resumed session",
        "In the fourth session",
        "In the third session",
        "In the second session",
        "In the resumed session",
        "In the oldest session",
    ]


@pytest.mark.parametrize(
    ("question", "part", "steps"),
    [
        ("", "said", ["facts_by_place (session=? AND seq>?)"]),
        (
            "what did I do in May 2024?",
            "anchor",
            [
                "facts_by_time (scope=? AND at>? AND at<?)",
                "facts_by_place (session=? AND seq>? AND seq<?)",
            ],
        ),
    ],
    ids=["last", "at a time"],
)
def test_what_was_said_is_found_without_reading_all(question, part, steps, provider):
    """The cost does not grow with the history: indexes lead to it (G10)."""
    statements: list[str] = []
    db = provider.opened.db
    db.set_trace_callback(statements.append)
    texts(provider, question)
    db.set_trace_callback(None)

    asked = next(one for one in statements if part in one)
    plan = [str(row[3]) for row in db.execute(f"explain query plan {asked}")]
    assert [one for one in steps if not any(one in step for step in plan)] == [], plan
    assert not any(step.startswith("SCAN facts") for step in plan), plan


def test_a_system_prompt_is_given_what_matters_most(provider):
    """A person's part of the prompt is never empty if something is known; others' is."""
    feed(provider, [turn("The boat is\nblue"), add("Speaks Polish", "user")])

    mine = RecallScope.own(ME)
    assert provider.system_prompt_block(mine) == (
        "- Speaks Polish\n- [2023-11-14, topic] The boat is blue"
    )
    assert provider.system_prompt_block(RecallScope("default", "somebody else", "")) == ""
    assert provider.system_prompt_block(RecallScope(None, None, None)) == ""


def test_a_question_is_read_into_terms_and_dates():
    """Stop words go, irregular forms are searched in all their forms, months and years are seen."""
    question = parse_question("Where did Ann go in May 2023, or was it March?")

    assert [term.stem for term in question.terms] == ["ann", "go", "2023", "march"]
    assert question.terms[1].forms == ("go", "goes", "went", "gone")
    assert question.months == {3, 5}
    assert question.years == {2023}


def test_what_says_nothing_is_not_asked_for():
    """The verb "may" is no month, and a foreign question asks for no stop word of English."""
    assert parse_question("May I ask what may come?").months == frozenset()
    assert parse_question("och sedan då?").terms == ()


def test_names_of_speakers_are_searched_only_if_nothing_else_is():
    """A speaker's name is no search term beside others."""
    named = frozenset({"ann"})

    assert [t.stem for t in parse_question("What did Ann paint?").terms_without(named)] == ["paint"]
    assert [t.stem for t in parse_question("Who is Ann?").terms_without(named)] == ["ann"]


@given(st.text(max_size=2_000))
def test_an_expression_holds_only_quoted_tokens(text):
    """What reaches the full-text engine is tokens in quotes, joined by OR, and nothing else."""
    terms = parse_question(text).terms

    assert len(terms) <= MAX_WORDS
    for term in terms:
        parts = any_token_expression(term.forms, ["1_"]).split(" OR ")
        assert all(part[0] == part[-1] == '"' and '"' not in part[1:-1] for part in parts)


def test_a_search_is_bounded():
    """The rarest terms are searched by, as many as the bounds allow, and always one (G10)."""
    terms = [Term(str(n), (str(n),)) for n in range(100)]

    assert choose_terms(terms, {t.stem: 0 for t in terms}) == []
    assert choose_terms(terms, {t.stem: 1 for t in terms}) == terms[:MAX_TERMS]
    assert choose_terms(terms[:3], {"0": MAX_MATCHES, "1": 5, "2": 9 * MAX_MATCHES}) == [terms[1]]
    assert choose_terms(terms[:1], {"0": 9 * MAX_MATCHES}) == terms[:1]


@pytest.mark.parametrize(
    "question", ["sedan", "the sedan", "a sedan?", "my van", "the son", "a cat"]
)
def test_an_english_word_is_no_stop_word_of_another_language(question):
    """A word that says nothing elsewhere is asked for, if nothing else is foreign."""
    asked = question.strip("?").split()[-1]
    assert asked in {term.word for term in parse_question(question).terms}


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who is Dr. Papadakis?", {"dr", "papadakis"}),
        ("ask Élodie. Her cousin knows", {"elodie"}),
        ("When did I move?", set()),
        ("does the CI use getUserToken", set()),
        ("Wo wohnt der Mann mit dem Hund", set()),
        ("что сказал Иван", {"иван"}),
    ],
)
def test_a_name_has_a_capital_within_a_sentence(question, names):
    """The first word of a sentence is no name for its capital, nor is a German noun."""
    assert parse_question(question).names == names


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
