"""Questions in any language find what answers them."""

from pathlib import Path

import pytest
from unit.holographic.finding.spoken_cases import SPOKEN, Case
from unit.holographic.holographic_feeding import feed, opened, texts, turn

MIN_FIRST_SHARE = 0.9
"""The share of right memories that come first."""


def answered(home: Path, cases: list[Case]) -> list[Case]:
    """Return the cases whose answer comes first, with all memories of all cases in one store."""
    with opened(home) as provider:
        told = [text for case in cases for text in (case.right, case.other)]
        for n, text in enumerate(told, start=1):
            feed(provider, [turn(text)], first=n, session=f"s{n}", root=f"s{n}")
        return [case for case in cases if texts(provider, case.asked)[:1] == [case.right]]


def test_the_table_is_wide_enough():
    """At least 15 languages have at least 8 cases each."""
    assert len(SPOKEN) >= 15
    assert min(map(len, SPOKEN.values())) >= 8


def test_most_questions_of_all_languages_are_answered(tmp_path):
    """With one person's memories in all languages in one store, the right one comes first."""
    cases = [case for some in SPOKEN.values() for case in some]

    assert len(answered(tmp_path, cases)) >= MIN_FIRST_SHARE * len(cases)


@pytest.mark.parametrize("language", SPOKEN)
def test_no_language_is_left_behind(language, tmp_path):
    """In each language for itself at most one question in eight fails."""
    cases = list(SPOKEN[language])

    assert len(answered(tmp_path, cases)) >= len(cases) - 1


CODE = [
    ("What does getUserToken return?", "getUserToken returns a JWT", "The user has a token"),
    ("how is the user token made", "see getUserToken", "The user went home"),
    ("Who wrote auth_service.py?", "auth_service.py is by Mia", "The auth service is by Tom"),
    ("the auth service", "look at auth_service.py", "look at the mail service"),
    ("What about /etc/nginx/site.conf?", "/etc/nginx/site.conf is ours", "nginx site is down"),
    ("What is E1234?", "E1234 means no disk", "E1235 means no fan"),
    ("error 1234", "it failed with E1234", "it failed with E1235"),
    ("What was wrong with C++?", "The C++ build broke", "The C build broke"),
    ("Who knows C#?", "Mia knows C# well", "Mia knows C++ well"),
    ("which .NET version", "We run .NET on the server", "The net is torn on the server"),
    ("what runs on srv-17", "srv-17 runs the mail", "srv-18 runs the mail, 17 jobs"),
    ("when was v2.3 released", "v2.3 was released in June", "v2.4 was released on day 3"),
    ("who maintains node.js here", "node.js is Mia's", "The node is Tom's, js"),
    ("who works in IT", "Mia works in IT", "Tom works and likes it"),
    ("how was the CI fixed", "Mia fixed the CI by hand", "Mia fixed the tap by hand"),
    ("when does Will arrive", "Will arrives at noon", "The train arrives at one"),
    ("what did we give May", "We gave May a kite", "We gave Tom a kite"),
    ("when is the PM free", "The PM is free at two", "Tom is free at one"),
    ("parseHTTPHeader", "ParseHTTPHeader is slow", "The header is parsed"),
]


@pytest.mark.parametrize(("asked", "right", "other"), CODE)
def test_code_is_found_by_its_parts_and_as_a_whole(asked, right, other, provider):
    """Identifiers, paths and error numbers are found however they are spelled."""
    feed(provider, [turn(right)], session="a")
    feed(provider, [turn(other)], first=2, session="b")

    assert texts(provider, asked)[0] == right


COMPOUNDS = [
    ("Wo ist der Schlüssel?", "Der Wohnungsschlüssel hängt im Flur"),
    ("Was macht die Wohnung?", "Der Wohnungsschlüssel hängt im Flur"),
    ("Wo sind die Haustürschlüssel?", "Die Schlüssel hängen im Flur"),
    ("Waar is de sleutel?", "De huissleutel ligt op tafel"),
    ("Vilken nyckel är det?", "Vi har en cykelnyckel på hyllan"),
]


@pytest.mark.parametrize(("asked", "right"), COMPOUNDS)
def test_a_compound_is_found_by_its_parts(asked, right, provider):
    """A part finds the compound, and a compound its parts."""
    feed(provider, [turn(right)], session="a")
    feed(provider, [turn("Der Himmel ist heute sehr blau")], first=2, session="b")

    assert texts(provider, asked) == [right]


@pytest.mark.parametrize(
    "asked", ["planetrium", "planettarium", "planeatrium", "planitarium", "lpanetaruim"]
)
def test_one_slip_is_forgiven(asked, provider):
    """A word that the scope does not know stands for one that is a slip away; two are too many."""
    feed(provider, [turn("We met at the planetarium by the river", "Nice")])

    found = texts(provider, f"Which {asked} was it?")
    assert bool(found) == (asked != "lpanetaruim")


def test_numbers_and_known_words_are_never_mistyped(provider):
    """Another number is another number, and a word that is known is meant."""
    feed(provider, [turn("The code is 47115"), turn("A heron")])
    feed(provider, [turn("Her heroes")], first=3, session="b")

    assert texts(provider, "47116") == []
    assert "Her heroes" not in texts(provider, "herons")
