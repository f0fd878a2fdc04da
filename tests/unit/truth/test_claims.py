"""Claims: what a text says that holds for a time, and which claim takes the place of which."""

import pytest
from memorybus_providers.truth.claims import claims, frame, rewords


@pytest.mark.parametrize(
    ("text", "slot", "subject", "value"),
    [
        ("I live in Lisbon", "home", "", "Lisbon"),
        ("Guess what, I've just moved to Oslo last week!", "home", "", "Oslo"),
        (
            "We moved from Oslo to a small house near Bergen",
            "home",
            "",
            "a small house near Bergen",
        ),
        ("My sister Ana lives in Graz", "home", "ana", "Graz"),
        ("I started a new job at Brandt Logistics", "employer", "", "Brandt Logistics"),
        ("By the way, I joined Helix in May", "employer", "", "Helix"),
        ("I work as a nurse", "occupation", "", "nurse"),
        ("We got married", "marital", "", "married"),
        ("My favourite colour is teal", "favorite color", "", "teal"),
        ("my new phone number is 040-771", "phone number", "", "040-771"),
        ("Tom's boss is Karim", "boss", "tom", "Karim"),
        ("I drive a red van", "drives", "", "red van"),
        ("I quit Helix and joined Brandt", "employer", "", "Brandt"),
        ("I changed my phone number to 5678", "phone number", "", "5678"),
        ("We moved the meeting to Tuesday", "meeting", "", "Tuesday"),
        ("The meeting was postponed to Tuesday", "meeting", "", "Tuesday"),
        ("The meeting is on Monday", "meeting", "", "on Monday"),
        ("I use vim for everything", "uses vim", "", "vim"),
        ("I switched from vim to helix", "uses vim", "", "helix"),
        ("We replaced the old boiler with a heat pump", "uses the old boiler", "", "a heat pump"),
        ("Ich wohne jetzt in Köln", "home", "", "Köln"),
        ("Wir sind nach Hamburg gezogen", "home", "", "Hamburg"),
        ("J'habite à Lyon", "home", "", "Lyon"),
        ("me mudé a Sevilla", "home", "", "Sevilla"),
        ("I don't live in Lisbon any more", "home", "", ""),
    ],
)
def test_a_plain_statement_claims(text: str, slot: str, subject: str, value: str) -> None:
    """A statement of the present fills one slot of one subject; an end empties it."""
    assert [(c.slot, c.subject, c.value) for c in claims(text)] == [(slot, subject, value)]


@pytest.mark.parametrize(
    "text",
    [
        "Where do I live?",
        "I might move to Oslo",
        "I used to live in Rome",
        "We want to work at Helix",
        "I moved in with Tom",
        "She lives in Rome",
        "My day is great",
        "My art is important to me",
        "If I live in Oslo, so be it",
        "The answer is 42",
    ],
)
def test_what_is_no_plain_statement_claims_nothing(text: str) -> None:
    """Questions, plans, the past, passing states and unknown subjects take nobody's place."""
    assert claims(text) == []


@pytest.mark.parametrize(
    ("text", "slot", "subject", "value"),
    [
        ("Lives in Lisbon", "home", "", "Lisbon"),
        ("The user lives in Lisbon.", "home", "", "Lisbon"),
        ("User's shoe size is 43", "shoe size", "", "43"),
        ("Favourite colour: teal", "favorite color", "", "teal"),
        ("The deadline is Friday", "deadline", "", "Friday"),
    ],
)
def test_a_kept_fact_needs_no_subject(text: str, slot: str, subject: str, value: str) -> None:
    """What was kept without saying whose is the person's."""
    assert [(c.slot, c.subject, c.value) for c in claims(text, kept=True)] == [
        (slot, subject, value)
    ]


@pytest.mark.parametrize(
    ("text", "other", "competes"),
    [
        ("Releases happen on Fridays", "Releases happen on Tuesdays", True),
        ("The budget is 300 euros", "The budget is 500 euros", True),
        ("Релиз готов в пятницу", "Релиз готов в среду", True),
        ("Bo's dog is called Rex", "Bo's cat is called Rex", False),
        ("Likes tea", "Likes coffee", False),
        ("Tea", "Coffee", False),
        ("Plays chess on Mondays with Ana", "Repaired the roof of the barn", False),
    ],
)
def test_kept_facts_compete_by_their_words(text: str, other: str, competes: bool) -> None:
    """The same frame with another value at its end: a general rule, for any language."""
    assert rewords(frame(text), frame(other)) is competes
