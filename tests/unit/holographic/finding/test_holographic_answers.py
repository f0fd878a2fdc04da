"""What was said and kept, a question, and what answers it: a table of the rules of recall."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from memorybus.events import Event
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.finding.spoken_cases import SPOKEN, Case
from unit.holographic.holographic_feeding import add, feed, opened, texts, turn

Told = Sequence[Sequence[Event | str | tuple[str, str]]]
"""Sessions: of each what the person said, with an answer or without, and other events."""


class Some(msgspec.Struct, frozen=True):
    """What comes, beside others: the first one, some that are there, and some that are not."""

    first: str = ""
    come: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


Answer = str | list[str] | Some | None
"""The memory that comes first, all that come in any order, or some; None if only any come."""

FILLER = "The weather stayed grey and cold over the whole long week"
STORY = "The kids were loud all day and the soup boiled over. We watched the regatta in the rain."
CELLO, ASKED = "The cello, since I was six", "Which instrument do you play?"
WAX = ("How do I wax the skis?", "Take a hot iron and wax. " * 60)
HARBOUR = ("I live near the harbour", "A fine place")
LANDLORD = "Our landlord is Frau Novak."
HALE = "My landlord Nadia Hale likes hale@example.org best"
ASIDES = [f"The ferry number {n} was late again, and the harbour stayed closed" for n in range(150)]
LITHIUM = "Agnes greases her tractor pump with lithium"
LONG_PROMPT = (
    "Morning! Yesterday was long, my sister visited, we cooked, and then somebody rang about "
    "invoices, but never mind that. What did Agnes say about grease for the tractor pump?"
)
MARA = [(f"Mara told me about day {day}", f"Fine, day {day}") for day in range(60)]
FERRIES = list(enumerate(("leave", "arrive", "sail", "dock")))
SISTER = "My sister Ana lives in Porto since the spring"
SOUP = [f"The soup boiled over, the kids were loud, day {day}" for day in range(9)]
CATS = ["Die Katze und die Maus"] * 5
KEY = "Der Wohnungsschlüssel hängt im Flur"
SKY = "Der Himmel ist heute sehr blau"
SLIPS = ("planetrium", "planettarium", "planeatrium", "planitarium")
PLANETARIUM = [[("We met at the planetarium by the river", "Nice")]]

RULES: dict[str, tuple[Told, Mapping[str, Answer]]] = {
    "a rare word counts more than a common one": (
        [[("tea tea", "tea and toast"), ("tea house", "tea leaves"), "green teapot"]],
        {"tea in a teapot": "green teapot"},
    ),
    "more of the question's words count more": (
        [["A red boat", "A red boat at anchor", "An anchor"]],
        {"Which red boat lay at anchor?": "A red boat at anchor"},
    ),
    "inflected and irregular forms are found": (
        [["Nothing of note", "We bought two canoes", "Some other day"]],
        {"What did they buy, a canoe?": "We bought two canoes"},
    ),
    "who says it counts, not who is called": (
        [
            [
                turn("", "I painted a sunset, dear me", user_name="Ann", assistant_name="Bob"),
                turn("I painted a sunset, dear Bob", "", user_name="Ann", assistant_name="Bob"),
            ]
        ],
        {"What did Bob paint, a sunset?": "I painted a sunset, dear me"},
    ),
    "a kept fact comes before a passing remark": (
        [["The gate code is 4711", add("The gate code is 9174")]],
        {"gate code": "The gate code is 9174"},
    ),
    "telling comes before asking": (
        [["The ferry is late", (FILLER, FILLER), FILLER, "Is the ferry late?"]],
        {"late ferry": "The ferry is late"},
    ),
    "only the same conversation is around a fact": (
        [[ASKED], [CELLO]],
        {"instrument": [ASKED]},
    ),
    "of questions that were answered only the answers are given": (
        [
            [
                *((f"When does the ferry {what}?", f"At {n} o'clock") for n, what in FERRIES),
                ("The ferry ticket costs 9 euros", "Noted"),
            ]
        ],
        {
            "What about the ferry?": Some(
                first="The ferry ticket costs 9 euros",
                come=tuple(f"At {n} o'clock" for n, _ in FERRIES),
                never=tuple(f"When does the ferry {what}?" for _, what in FERRIES),
            )
        },
    ),
    "a bare question fills no block, however long its answer": (
        [[WAX], ["My skis are red"]],
        {"What about my skis?": Some(come=("My skis are red",), never=WAX[:1])},
    ),
    "no answer: no word, only stop words, or words nobody said": (
        [[("A heron by the pond", "What is it?")]],
        {asked: [] for asked in ("?!", "what is it", "\0", "\ud800", "zzz", "' OR 1")},
    ),
    "a passing word is no answer to what was never said": (
        [ASIDES],
        {
            "Which grease does the pump of Agnes's tractor need when it is late?": [],
            "Was the harbour closed?": None,
        },
    ),
    "of a long prompt a fact need not say more than the rarest words": (
        [ASIDES, [LITHIUM]],
        {LONG_PROMPT: LITHIUM},
    ),
    "in a small store a fact is given for a single word": (
        [[add("Takes swimming every Tuesday"), add("Likes tea")]],
        {"Where do the evening swimming lessons begin?": ["Takes swimming every Tuesday"]},
    ),
    "the words around a name say nothing of whom it names": (
        [MARA],
        {"what did Mara tell me about day 7": None, "what did Ruben tell me": []},
    ),
    "the word with which a request begins is no search term beside others": (
        [[LANDLORD], ["Write a regex for dates."]],
        {
            "Write an email to our landlord that the heating fails": [LANDLORD],
            "Could you please write to our landlord that the heating fails?": [LANDLORD],
            "write": ["Write a regex for dates."],
        },
    ),
    "a fact that contains a name fits, if all names are known": (
        [[(HALE, "Noted"), *((f"It rained {n} hours", "Oh dear") for n in range(99))]],
        {
            "Email my landlord that the heating is broken": HALE,
            "arrange a trial appointment with Nadia on Saturday, mind the parking": HALE,
            "arrange a trial appointment with Nadia and Osgood, mind the parking": Some(
                never=(HALE,)
            ),
            "arrange a trial appointment on Saturday, mind the parking, who likes it": Some(
                never=(HALE,)
            ),
            "Email my plumber that the heating is broken": Some(never=(HALE,)),
        },
    ),
    "a fact of the story does not outrank one that answers its question": (
        [[SISTER, *SOUP, "We watched the regatta all day, in the rain"]],
        {f"{STORY} {STORY} Where does my sister live? {STORY}": SISTER},
    ),
    "a stop word is no form of another word: died": (
        [["Grandpa died in May"], *([f"{text} {n}"] for n, text in enumerate(CATS))],
        {"When was it that Grandpa died?": ["Grandpa died in May"]},
    ),
    "a stop word is no form of another word: dogs": (
        [["Her dog is Rex"], *([f"{text} {n}"] for n, text in enumerate(CATS))],
        {"What dogs does she have?": ["Her dog is Rex"]},
    ),
    "a stop word is no form of another word: hats": (
        [["A hat of straw"], *([f"Hunde, die bellen {n}"] for n in range(5))],
        {"Which hats does she wear?": ["A hat of straw"]},
    ),
    "stop words of other languages alone are no answer": (
        [["Die Katze, die schnurrt, dieser Kater"], ["pour nous"]],
        {asked: [] for asked in ("What died?", "Diesel", "poured")},
    ),
    "what is a stop word in another language is found by itself": (
        [["He did not want to die"], ["The pour was slow"]],
        {
            "Who wanted to die?": ["He did not want to die"],
            "How slow is the pour?": ["The pour was slow"],
        },
    ),
    "a contraction names neither Will nor Don": (
        [
            [
                turn(
                    "The regatta is off",
                    "It is on, with Will",
                    user_name="Will",
                    assistant_name="Bo",
                )
            ]
        ],
        {
            "Who'll say that the regatta won't be off?": [
                "It is on, with Will",
                "The regatta is off",
            ]
        },
    ),
    "a part finds the German compound, and a compound its parts": (
        [[KEY], [SKY]],
        {"Wo ist der Schlüssel?": [KEY], "Was macht die Wohnung?": [KEY]},
    ),
    "a compound finds its German part": (
        [["Die Schlüssel hängen im Flur"], [SKY]],
        {"Wo sind die Haustürschlüssel?": ["Die Schlüssel hängen im Flur"]},
    ),
    "a part finds the Dutch compound": (
        [["De huissleutel ligt op tafel"], [SKY]],
        {"Waar is de sleutel?": ["De huissleutel ligt op tafel"]},
    ),
    "a part finds the Swedish compound": (
        [["Vi har en cykelnyckel på hyllan"], [SKY]],
        {"Vilken nyckel är det?": ["Vi har en cykelnyckel på hyllan"]},
    ),
    "an unknown word stands for one that is a slip away, and for none that is two": (
        PLANETARIUM,
        dict.fromkeys([f"Which {slip} was it?" for slip in SLIPS])
        | {"Which lpanetaruim was it?": []},
    ),
    "another number is another number, and a known word is meant": (
        [["The code is 47115", "A heron"], ["Her heroes"]],
        {"47116": [], "herons": Some(never=("Her heroes",))},
    ),
}
RULES |= {
    f"an answer comes without its question, whatever stands behind that: {caption!r}": (
        [[*[(FILLER, FILLER)] * 5, (f"{ASKED}{caption}", CELLO)]],
        {"instrument": Some(first=CELLO, never=(f"{ASKED}{caption}",))},
    )
    for caption in ("", " [photo: a shelf]", '" ', ")")
}
RULES |= {
    f"a question that was asked before is left out, its answers are not: {asked}": (
        [[HARBOUR], [(asked, "Near the harbour")]],
        {"Where do I live?": Some(come=(HARBOUR[0], "Near the harbour"), never=(asked,))},
    )
    for asked in ("Where do I live?", "“So where do I live?”", "Live where?!")
}
RULES |= {
    f"what people call or spell in two ways is found by either: {asked}": (
        [[said, "It rained all day", "The shop opens at nine"]],
        {asked: said},
    )
    for asked, said in (
        ("who is my doctor", "Dr. van Houten is on holiday"),
        ("what may my mother not have", "Mum cannot take penicillin"),
        ("where did I leave the bicycle", "The bike stands behind the shed"),
        ("what is her favorite color", "Green is her favourite"),
        ("which kids play here", "A child plays the flute"),
    )
}
RULES |= {
    f"code is found by its parts and as a whole: {asked}": ([[right], [other]], {asked: right})
    for asked, right, other in (
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
    )
}


def tell(provider: HolographicProvider, told: Told) -> None:
    """Apply sessions one after another."""
    number = 1
    for n, session in enumerate(told):
        said: list[Any] = [turn(one) if isinstance(one, str) else one for one in session]
        events = [turn(*one) if isinstance(one, tuple) else one for one in said]
        feed(provider, events, first=number, session=f"s{n}")
        number += len(events)


@pytest.mark.parametrize("rule", RULES)
def test_a_question_is_answered_by_the_rule(rule, provider):
    """What comes first, all that comes, and what does not, as the case's name states."""
    told, answers = RULES[rule]
    tell(provider, told)
    for asked, answer in answers.items():
        found = texts(provider, asked)
        if isinstance(answer, list):
            assert sorted(found) == sorted(answer), asked
        elif isinstance(answer, Some):
            assert found[:1] == [answer.first] or not answer.first, asked
            assert set(answer.come) <= set(found), asked
            assert not set(answer.never).intersection(found), asked
        else:
            assert found[0] == (answer or found[0]), asked


MIN_FIRST_SHARE = 0.9
"""The share of right memories that come first."""


def answered(cases: Sequence[Case], home: Any) -> int:
    """Return of how many cases the answer comes first, with all their memories in one store."""
    with opened(home) as provider:
        tell(provider, [[text] for case in cases for text in (case.right, case.other)])
        return sum(texts(provider, case.asked)[:1] == [case.right] for case in cases)


def test_most_questions_of_all_languages_are_answered(tmp_path):
    """With one person's memories in all languages in one store, the right one comes first."""
    cases = [case for some in SPOKEN.values() for case in some]

    assert answered(cases, tmp_path) >= MIN_FIRST_SHARE * len(cases)


@pytest.mark.parametrize("language", SPOKEN)
def test_no_language_is_left_behind(language, tmp_path):
    """In each language for itself at most one question in eight fails."""
    assert answered(SPOKEN[language], tmp_path) >= len(SPOKEN[language]) - 1
