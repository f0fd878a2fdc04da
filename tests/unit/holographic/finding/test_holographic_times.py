"""Times that a question names: how they are read, and what they find."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import Scope
from memorybus.testing import FakeClock
from memorybus_providers.base import ProviderConfig, RecallContext
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.language.languages import LATIN
from memorybus_providers.language.query import parse_question
from memorybus_providers.language.times import YEARS_OF_A_MONTH, Period, read_times
from memorybus_providers.ranking.said_within import MAX_PARTS, MIN_PARTS, parts_of_time
from unit.holographic.holographic_feeding import ME, MINE, add, context, feed, turn

WEDNESDAY = "2026-06-17T15:30"
MONTHS_END = "2026-03-31T23:59"
NEW_YEAR = "2027-01-01T00:00"

READ = (
    # (now, question, from, to)
    (WEDNESDAY, "What did I do today?", "2026-06-17", "2026-06-18"),
    (WEDNESDAY, "what did I eat this morning", "2026-06-17", "2026-06-17T12"),
    (WEDNESDAY, "this afternoon", "2026-06-17T12", "2026-06-17T18"),
    (WEDNESDAY, "this evening", "2026-06-17T18", "2026-06-18"),
    (WEDNESDAY, "yesterday", "2026-06-16", "2026-06-17"),
    (WEDNESDAY, "what was yesterday evening?", "2026-06-16T18", "2026-06-17"),
    (WEDNESDAY, "who called last night?", "2026-06-16T18", "2026-06-17T06"),
    (WEDNESDAY, "the day before yesterday", "2026-06-15", "2026-06-16"),
    (WEDNESDAY, "this week", "2026-06-15", "2026-06-22"),
    (WEDNESDAY, "What did I do LAST WEEK?", "2026-06-08", "2026-06-15"),
    (WEDNESDAY, "last weekend", "2026-06-13", "2026-06-15"),
    (WEDNESDAY, "this month", "2026-06-01", "2026-07-01"),
    (WEDNESDAY, "last month", "2026-05-01", "2026-06-01"),
    (WEDNESDAY, "last year's trip", "2025-01-01", "2026-01-01"),
    (WEDNESDAY, "what was 2 days ago", "2026-06-15", "2026-06-16"),
    (WEDNESDAY, "3 weeks ago", "2026-05-24", "2026-05-31"),
    (WEDNESDAY, "a week ago", "2026-06-07", "2026-06-14"),
    (WEDNESDAY, "a couple of days ago", "2026-06-15", "2026-06-16"),
    (WEDNESDAY, "two months ago", "2026-04-01", "2026-05-01"),
    (WEDNESDAY, "twelve years ago", "2014-01-01", "2015-01-01"),
    (WEDNESDAY, "in the last 5 days", "2026-06-12", "2026-06-18"),
    (WEDNESDAY, "over the past week", "2026-06-10", "2026-06-18"),
    (WEDNESDAY, "what did she say on Tuesday", "2026-06-16", "2026-06-17"),
    (WEDNESDAY, "last Friday", "2026-06-12", "2026-06-13"),
    (WEDNESDAY, "on Wednesday", "2026-06-10", "2026-06-11"),
    (WEDNESDAY, "in May 2025", "2025-05-01", "2025-06-01"),
    (WEDNESDAY, "Sept 2024", "2024-09-01", "2024-10-01"),
    (WEDNESDAY, "last May", "2026-05-01", "2026-06-01"),
    (WEDNESDAY, "last June", "2025-06-01", "2025-07-01"),
    (WEDNESDAY, "in 2024", "2024-01-01", "2025-01-01"),
    (WEDNESDAY, "8 May 2026", "2026-05-08", "2026-05-09"),
    (WEDNESDAY, "on May 8th, 2026", "2026-05-08", "2026-05-09"),
    (WEDNESDAY, "the 1st of dec 2025", "2025-12-01", "2025-12-02"),
    (WEDNESDAY, "2026-05-08", "2026-05-08", "2026-05-09"),
    (WEDNESDAY, "am 8.5.2026", "2026-05-08", "2026-05-09"),
    (WEDNESDAY, "Was habe ich gestern gemacht?", "2026-06-16", "2026-06-17"),
    (WEDNESDAY, "vorgestern", "2026-06-15", "2026-06-16"),
    (WEDNESDAY, "Was war letzte Woche?", "2026-06-08", "2026-06-15"),
    (WEDNESDAY, "vor 3 Wochen", "2026-05-24", "2026-05-31"),
    (WEDNESDAY, "vor einem Monat", "2026-05-01", "2026-06-01"),
    (WEDNESDAY, "in den letzten fünf Tagen", "2026-06-12", "2026-06-18"),
    (WEDNESDAY, "am Dienstag", "2026-06-16", "2026-06-17"),
    (WEDNESDAY, "am 8. März 2026", "2026-03-08", "2026-03-09"),
    (WEDNESDAY, "heute früh", "2026-06-17", "2026-06-17T12"),
    (MONTHS_END, "a month ago", "2026-02-01", "2026-03-01"),
    (MONTHS_END, "last month", "2026-02-01", "2026-03-01"),
    (MONTHS_END, "13 months ago", "2025-02-01", "2025-03-01"),
    (MONTHS_END, "today", "2026-03-31", "2026-04-01"),
    (NEW_YEAR, "yesterday", "2026-12-31", "2027-01-01"),
    (NEW_YEAR, "last night", "2026-12-31T18", "2027-01-01T06"),
    (NEW_YEAR, "this week", "2026-12-28", "2027-01-04"),
    (NEW_YEAR, "last month", "2026-12-01", "2027-01-01"),
    (NEW_YEAR, "last year", "2026-01-01", "2027-01-01"),
    (NEW_YEAR, "last December", "2026-12-01", "2027-01-01"),
)

NOT_READ = (
    "the last thing I said", "the last week of the course", "what may come", "May I ask?",
    "next week", "tomorrow", "in a week", "the last friday", "was gibt es hier", "2026-13-45",
    "v1.8.5.2026", "no day before", "marching in", "on Fridays", "0 May",
    "99999999 weeks ago", "999 years ago",
)  # fmt: skip


def ms(iso: str) -> int:
    """Return an ISO time in UTC as milliseconds."""
    return round(datetime.fromisoformat(iso).replace(tzinfo=UTC).timestamp() * 1000)


def test_a_time_is_read_as_a_period():
    """A question that names one time means that period, counted from when it is asked."""
    for now, question, start, end in READ:
        hours = [iso if "T" not in iso else f"{iso}:00" for iso in (start, end)]
        expected = (Period(ms(hours[0]), ms(hours[1])),)
        assert parse_question(question, now=ms(now)).periods == expected, question


@pytest.mark.parametrize(
    ("zone", "now", "question", "start", "end"),
    [
        (
            "America/New_York",
            "2026-11-26T01:30",
            "yesterday",
            "2026-11-24T05:00",
            "2026-11-25T05:00",
        ),
        ("Asia/Tokyo", "2026-11-26T16:00", "yesterday", "2026-11-25T15:00", "2026-11-26T15:00"),
        (
            "Europe/Berlin",
            "2026-11-26T12:00",
            "on 25 October 2026",
            "2026-10-24T22:00",
            "2026-10-25T23:00",
        ),
        (
            "Europe/Berlin",
            "2026-11-26T12:00",
            "in July 2026",
            "2026-06-30T22:00",
            "2026-07-31T22:00",
        ),
        (
            "Asia/Kolkata",
            "2026-11-26T12:00",
            "this morning",
            "2026-11-25T18:30",
            "2026-11-26T06:30",
        ),
    ],
)
def test_a_day_begins_where_the_person_is(zone, now, question, start, end):
    """Days are those of the clocks there, also where one has 25 hours."""
    asked = parse_question(question, now=ms(now), zone=ZoneInfo(zone))
    assert asked.periods == (Period(ms(start), ms(end)),)


def test_what_only_looks_like_a_time_is_none():
    """Verbs, days to come, impossible dates and last things are no times."""
    asked = [parse_question(question, now=ms(WEDNESDAY)).periods for question in NOT_READ]
    assert asked == [()] * len(NOT_READ)


@pytest.mark.parametrize(
    ("question", "month"),
    [
        ("what happened in august?", 8), ("in dec", 12), ("in may", 5), ("im Mai", 5),
        ("during early March", 3),
    ],
)  # fmt: skip
def test_a_month_without_a_year_is_that_of_any_year(question, month):
    """The last years' months are meant, all of them."""
    asked = parse_question(question, now=ms(WEDNESDAY))

    assert (asked.months, asked.years) == ({month}, frozenset())
    assert len(asked.periods) == YEARS_OF_A_MONTH
    assert asked.periods[1].holds(ms(f"2025-{month:02}-10"))


def test_a_day_without_a_year_is_that_of_any_year():
    """A leap day is looked for where there is one."""
    assert len(parse_question("on May 8th", now=ms(WEDNESDAY)).periods) == YEARS_OF_A_MONTH
    leap = parse_question("29 February", now=ms(WEDNESDAY)).periods
    assert [one.start for one in leap] == [ms("2024-02-29"), ms("2020-02-29")]


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What did I paint last week?", ["paint"]),
        ("What did Ann paint in May 2025, or in June?", ["ann", "paint"]),
        ("Which boat did I see 3 weeks ago, on 8 May?", ["8", "may", "boat", "see"]),
        ("What did I do last week?", []),
        ("Was war vor 3 Wochen?", []),
        ("Who painted the café in August?", ["painted", "cafe"]),
    ],
)
def test_words_of_a_time_are_not_searched_for(question, terms):
    """What names a time is no search term, but a day of a month is; all other words are."""
    found = parse_question(question, now=ms(WEDNESDAY)).terms
    assert list(dict.fromkeys(term.word for term in found)) == terms


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("What did I do last week?", True),
        ("What did we talk about yesterday?", True),
        ("What happened in August?", True),
        ("What did Ann do last month?", True),
        ("What did I paint last week?", False),
        ("What happened?", False),
    ],
)
def test_a_question_may_ask_for_a_time_alone(question, alone):
    """Beside a time, names of speakers and words such as "happened" ask for nothing more."""
    assert parse_question(question, now=ms(WEDNESDAY)).names_only_a_time({"ann"}) == alone


phrases = st.sampled_from([question for _, question, _, _ in READ] + list(NOT_READ))


@given(st.lists(st.one_of(st.text(max_size=30), phrases), max_size=8).map(" ".join), st.integers())
def test_any_text_is_harmless_at_any_time(text, now):
    """No text and no time raises; each period has an end; what names no time is untouched."""
    times = read_times(text, now, LATIN)

    assert all(period.start < period.end for period in times.periods)
    assert times.periods or times.rest == text
    assert parse_question(text, now=now).words == parse_question(text).words


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(8, 10**11)), min_size=1, max_size=20))
def test_the_parts_of_a_time_cover_it(spans):
    """Periods are cut without a gap, and into no more parts than are allowed."""
    periods = [Period(start, start + length) for start, length in spans]
    parts = parts_of_time(periods)

    assert len(parts) <= max(MAX_PARTS, MIN_PARTS * len(periods))
    assert sum(one.end - one.start for one in parts) == sum(length for _, length in spans)


# -- what is found ----------------------------------------------------------------------------

NOW = ms(WEDNESDAY)
LIFE = (
    # (when, what the person said, what was answered)
    ("2025-08-11T10:00", "We sailed to the island of Fur", "The crossing must have been windy"),
    ("2025-08-29T10:00", "Mia broke her arm on the pier", "I hope it heals soon"),
    ("2026-02-01T10:00", "Last week was dull, what a week to forget", "Next week will be better"),
    ("2026-02-02T10:00", "My week in August is for happened things", "August it is"),
    ("2026-05-27T10:00", "The violin lesson went well", "Which piece did you play?"),
    ("2026-06-09T10:00", "I planted tomatoes behind the shed", "They like the sun"),
    ("2026-06-12T10:00", "The roof leaks above the kitchen", "Call a roofer"),
    ("2026-06-16T09:00", "I sold the old bicycle to Tom", "For how much?"),
    ("2026-06-17T08:00", "Breakfast was porridge with plums", "A good start"),
)
"""Some of it shares words with the questions below and was said at another time."""


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[HolographicProvider]:
    """Return an open provider that holds that life, on a Wednesday afternoon."""
    config = ProviderConfig(name="holographic", home=tmp_path, clock=FakeClock(NOW))
    provider = HolographicProvider(config)
    provider.open()
    for n, (when, said, answer) in zip(count(1), LIFE, strict=False):
        feed(provider, [turn(said, answer)], first=n, session=f"s{n}", root=f"s{n}", at=ms(when))
    yield provider
    provider.shutdown()


def found_by(provider: HolographicProvider, question: str, as_of: str = "") -> list[str]:
    """Return what is recalled."""
    ctx = RecallContext(MINE, as_of=ms(as_of) if as_of else None)
    return [one.text for one in provider.prefetch(question, ctx)]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What did I do last week?", [6, 5]),
        ("yesterday", [7]),
        ("What happened this morning?", [8]),
        ("3 weeks ago", [4]),
        ("What happened in August?", [1, 0]),
        ("in aug", [1, 0]),
        ("letzte Woche", [6, 5]),
        ("vor 3 Wochen", [4]),
        ("on May 27th", [4]),
        ("What did I buy yesterday?", [7]),
        ("Was habe ich letzte Woche gekauft?", [6, 5]),
        ("What did I sell and decide this week?", [7]),
    ],
)
def test_a_time_alone_is_answered_by_what_was_said_then(question, first, provider):
    """The person's words of then come first, the answers after them, and nothing else."""
    found = found_by(provider, question)

    assert found == [LIFE[n][1] for n in first] + [LIFE[n][2] for n in first]


@pytest.mark.parametrize(
    "question", ["What did I do last month on Sunday?", "2 months ago", "vor 2 Monaten"]
)
def test_a_time_at_which_nothing_was_said_has_no_answer(question, provider):
    """Words that name a time find nothing that merely holds them."""
    assert not set(found_by(provider, question)) - {LIFE[4][1], LIFE[4][2]}


def test_a_month_in_which_nothing_was_said_is_searched_for(provider):
    """What was said of a month at another time is better than nothing."""
    feed(provider, [turn("The wedding is in October")], first=50, at=ms("2026-02-03"))

    assert found_by(provider, "What happens in October?") == ["The wedding is in October"]


def test_a_time_decides_between_facts_that_fit_alike(provider):
    """Beside other words the time speaks for what was said then, however new the rest is."""
    for n, day in enumerate(("2026-06-01", "2026-06-10", "2026-06-16"), start=50):
        feed(provider, [turn(f"I painted boat number {n}")], first=n, session=day, at=ms(day))

    assert found_by(provider, "Which boat did I paint last week?")[0] == "I painted boat number 51"
    assert found_by(provider, "Which boat did I paint on 1 June?")[0] == "I painted boat number 50"


def test_a_fact_of_then_is_looked_at_however_many_share_its_words(provider):
    """A fact that many newer ones outnumber is still found by the time at which it was said."""
    turns = [turn(f"The ferry was late again, {n}", f"Ferry {n}") for n in range(200)]
    feed(provider, turns, first=100, session="f", root="f", at=ms("2026-06-15"))
    feed(provider, [turn("The ferry sank")], first=400, session="g", at=ms("2026-04-07"))

    assert found_by(provider, "What was with the ferry in April 2026?")[0] == "The ferry sank"


def test_an_answer_as_of_a_time_counts_from_then(provider):
    """Yesterday is the day before the time that is asked about."""
    assert found_by(provider, "yesterday", as_of="2026-06-10T12:00")[0] == LIFE[5][1]


def test_much_that_was_said_is_shown_from_all_of_the_time(provider):
    """A block that cannot hold a whole month shows something of each part of it."""
    for day in range(1, 32):
        told = [
            turn(f"On day {day} I wrote page {n} of the book" + " and more" * 9) for n in range(9)
        ]
        feed(provider, told, first=day * 100, session=f"d{day}", at=ms(f"2026-01-{day:02}"))

    found = provider.prefetch("What did I do in January?", RecallContext(MINE))
    weeks = {(one.at - ms("2026-01-01")) // (7 * 86_400_000) for one in found}
    assert len(weeks) >= 4


def test_others_are_never_seen_at_any_time(provider):
    """What another person said then stays theirs."""
    eve = Scope("coder", "eve")
    feed(provider, [turn("I robbed the bank")], first=70, scope=eve, at=ms("2026-06-16"))
    feed(provider, [add("Robs banks")], first=71, scope=eve, at=ms("2026-06-16"))

    assert found_by(provider, "yesterday") == [LIFE[7][1], LIFE[7][2]]


def test_what_mentions_the_activity_comes_first(provider):
    """Of what was said then, what contains the verb of the question is the likeliest answer."""
    times = {"2026-06-09T11:00": "I bought a wheelbarrow", "2026-06-09T12:00": "It rained all day"}
    for n, (when, said) in enumerate(times.items(), start=80):
        feed(provider, [turn(said, "I see")], first=n, session=f"s{n}", root=f"s{n}", at=ms(when))

    assert found_by(provider, "What did I buy last week?")[0] == "I bought a wheelbarrow"


def test_the_zone_of_the_settings_says_what_yesterday_is(tmp_path):
    """In recalls, in their reasons and in tools: at 22:00 in New York it is tomorrow in UTC."""
    zone = ZoneInfo("America/New_York")
    clock = FakeClock(ms("2026-06-17T02:00"))
    config = ProviderConfig(name="holographic", home=tmp_path, clock=clock, zone=zone)
    provider = HolographicProvider(config)
    provider.open()
    feed(provider, [turn("I sold the old bicycle to Tom", "He is glad")], at=ms("2026-06-16T03:00"))
    found = provider.prefetch(
        "What did I sell to Tom yesterday?", RecallContext(MINE, explain=True)
    )
    tool = provider.handle_tool_call("memory_search", {"query": "yesterday"}, context(99, ME))
    asked = found_by(provider, "yesterday"), found_by(provider, "today")
    provider.shutdown()

    assert asked == (["I sold the old bicycle to Tom", "He is glad"], [])
    assert found[0].why is not None
    assert "time" in found[0].why.parts
    assert [one["text"] for one in tool["results"]] == [
        "I sold the old bicycle to Tom",
        "He is glad",
    ]


@pytest.mark.parametrize(
    "question",
    [
        "what's on my calendar on April 17",
        "What do I have on April 17?",
        "What happens on the 17th of April?",
        "Was steht am 17. April an?",
    ],
)
def test_a_date_is_a_search_term_too(question, provider):
    """A fact that contains the date is found, whenever it was said."""
    said = "2026-04-02"
    told = ["The dentist is on April 17", "Tom moves on May 17", "April was cold", "17 cranes came"]
    for n, text in enumerate(told, start=1):
        feed(provider, [turn(text)], first=900 + n, session=f"d{n}", root=f"d{n}", at=ms(said))
    noise = [turn(f"I watered the plants {n}") for n in range(20)]
    feed(provider, noise, first=950, session="n", root="n", at=ms("2026-04-17"))
    ctx = RecallContext(MINE, as_of=ms("2026-04-18"))

    found = [one.text for one in provider.prefetch(question, ctx)]

    assert found[0] == "The dentist is on April 17"
