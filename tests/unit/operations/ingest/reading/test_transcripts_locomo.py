"""LoCoMo JSON becomes sessions in a lineage, at the times it tells."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.text.display import iso
from memorybus.text.times import parse_timestamp
from memorybus_console.operations.ingest.reading.model import Transcript, TranscriptError
from memorybus_console.operations.ingest.reading.transcripts import (
    parse_transcript,
    read_transcript,
)


def said(speaker: str, text: str, **more: object) -> dict[str, object]:
    """Return one utterance."""
    return {"speaker": speaker, "text": text, "dia_id": "D1:1"} | more


def sample(**sessions: object) -> dict[str, object]:
    """Return a conversation of Ann, the user, and Bo."""
    return {"speaker_a": "Ann", "speaker_b": "Bo"} | sessions


def parsed(value: object) -> Transcript:
    """Parse a value as the file ``seven.json``."""
    return parse_transcript(json.dumps(value).encode(), "seven.json", "seven")


NOON = "12:00 pm on 1 March, 2024"


def test_sessions_follow_each_other_in_number_order():
    """Each session continues the one before, whatever the order in the file."""
    transcript = parsed(
        sample(
            session_10=[said("Ann", "ten")],
            session_2=[said("Ann", "two")],
            session_2_date_time=NOON,
            session_10_date_time=NOON,
            session_11_date_time=NOON,
        )
    )

    assert [(c.session, c.after) for c in transcript.conversations] == [
        ("seven:session_2", ""),
        ("seven:session_10", "seven:session_2"),
    ]
    assert {c.user for c in transcript.conversations} == {"Ann"}


@pytest.mark.parametrize(
    ("speakers", "expected"),
    [
        ("ab", [("a0", "b1")]),
        ("ba", [("", "b0"), ("a1", "")]),
        ("aab", [("a0", ""), ("a1", "b2")]),
        ("abb", [("a0", "b1"), ("", "b2")]),
        ("a", [("a0", "")]),
        ("abab", [("a0", "b1"), ("a2", "b3")]),
    ],
)
def test_each_side_of_a_turn_is_one_utterance(speakers, expected):
    """Who speaks twice in a row opens a new turn with an empty other side."""
    names = {"a": "Ann", "b": "Bo"}
    session = [said(names[s], f"{s}{i}") for i, s in enumerate(speakers)]

    (conversation,) = parsed(sample(session_1=session)).conversations

    assert [(t.user, t.assistant) for t in conversation.turns] == expected
    assert {(t.user_name, t.assistant_name) for t in conversation.turns} == {("Ann", "Bo")}


def test_a_photo_is_told_by_its_caption():
    """The caption stands behind the verbatim text, and alone where nothing was said."""
    session = [
        said("Ann", "Look! ", blip_caption="a red boat"),
        said("Bo", "", blip_caption="a pier"),
    ]

    (conversation,) = parsed(sample(session_1=session)).conversations

    turn = conversation.turns[0]
    assert turn.user == "Look!  [photo: a red boat]"
    assert turn.assistant == " [photo: a pier]"


def test_utterances_keep_their_fields():
    """Ids and picture addresses of an utterance stay in the turn's messages."""
    (conversation,) = parsed(sample(session_1=[said("Ann", "x", img_url=["u"])])).conversations

    (message,) = conversation.turns[0].messages
    assert message == {
        "role": "user",
        "name": "Ann",
        "content": "x",
        "dia_id": "D1:1",
        "img_url": ["u"],
    }


def test_the_original_list_of_samples_is_read_too():
    """Samples under ``conversation`` are named by their own id."""
    inner = sample(session_1=[said("Ann", "x")])

    found = parsed([{"sample_id": "s1", "conversation": inner}, {"conversation": inner}])

    assert [(c.session, c.named) for c in found.conversations] == [
        ("s1:session_1", True),
        ("seven-2:session_1", False),
    ]


def test_empty_utterances_are_counted():
    """Nothing said is no turn, and is counted."""
    found = parsed(sample(session_1=[said("Ann", ""), said("Bo", "y")]))

    assert (found.turns, found.skipped) == (1, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("12:09 am on 13 September, 2023", datetime(2023, 9, 13, 0, 9, tzinfo=UTC)),
        ("12:00 PM on 29 February, 2024", datetime(2024, 2, 29, 12, 0, tzinfo=UTC)),
    ],
)
def test_session_times_are_read_as_utc(text, expected):
    """A session's time is its event time, in UTC, midnight and noon included."""
    assert parse_timestamp(text) == expected.timestamp() * 1000


@given(st.datetimes(datetime(1971, 1, 1), datetime(2199, 1, 1)))  # noqa: DTZ001
def test_every_minute_can_be_said_and_read(moment):
    """Reading what was written gives the same minute back."""
    minute = moment.replace(second=0, microsecond=0, tzinfo=UTC)
    hour = minute.hour % 12 or 12
    half = "pm" if minute.hour >= 12 else "am"
    said_so = f"{hour}:{minute:%M} {half} on {minute.day} {minute:%B}, {minute.year}"

    assert parse_timestamp(said_so) == minute.timestamp() * 1000


def test_a_session_takes_its_time_as_event_time():
    """All turns of a session carry its time; a session without one carries none."""
    found = parsed(
        sample(
            session_1=[said("Ann", "x")],
            session_1_date_time="1:56 pm on 8 May, 2023",
            session_2=[said("Ann", "y")],
        )
    )

    first, second = found.conversations
    assert iso(first.turns[0].at) == "2023-05-08T13:56:00.000Z"
    assert second.turns[0].at is None


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"speaker_a": "Ann"}, "seven.json: 'speaker_a' and 'speaker_b'"),
        ({"speaker_a": "Ann", "speaker_b": "Ann"}, "seven.json: 'speaker_a' and"),
        (sample(), "seven.json: no session"),
        (sample(session_1="x"), "seven.json: session_1: expected a list"),
        (sample(session_1=["x"]), "seven.json: session_1[0]: expected an object"),
        (sample(session_1=[said("Cy", "x")]), "seven.json: session_1[0]: speaker 'Cy' is neither"),
        (sample(session_1=[{"text": "x"}]), "seven.json: session_1[0]: speaker 'None'"),
    ],
)
def test_a_broken_sample_is_named(value, complaint):
    """A sample of which nothing can be read is refused by file, session and reason."""
    with pytest.raises(TranscriptError) as caught:
        parsed(value)

    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize("time", ["soon", "1:00 pm on 31 June, 2023", {}])
def test_a_session_whose_time_is_none_keeps_its_words(time):
    """A time that cannot be read is counted."""
    transcript = parsed(sample(session_1=[said("Ann", "x")], session_1_date_time=time))

    assert transcript.left_out.dropped == {"unreadable times": 1}
    assert [(turn.user, turn.at) for turn in transcript.conversations[0].turns] == [("x", None)]


def test_what_is_broken_in_a_sample_costs_itself():
    """An utterance, a session and a sample that cannot be read are named, the others are read."""
    odd = [3, said("Cy", "x"), said("Bo", "y")]
    transcript = parsed([sample(session_1=odd, session_2="z", session_3=[said("Ann", "u")]), 3])

    assert [r.place for r in transcript.left_out.named] == [
        "seven.json: item 1: session_1[0]",
        "seven.json: item 1: session_1[1]",
        "seven.json: item 1: session_2",
        "seven.json: item 2",
    ]
    assert [t.user or t.assistant for c in transcript.conversations for t in c.turns] == ["y", "u"]


def test_a_missing_file_is_a_clear_error(tmp_path):
    """A file that cannot be read is named."""
    with pytest.raises(TranscriptError, match=r"gone\.json: No such file"):
        read_transcript(tmp_path / "gone.json")


@pytest.mark.locomo
@pytest.mark.parametrize("name", ["26", "41", "43", "47", "49"])
def test_the_real_conversations_lose_no_utterance(name):
    """Every utterance of a real conversation stands verbatim in exactly one turn."""
    found = [p / f"{name}.json" for p in _data_places() if (p / f"{name}.json").exists()]
    if not found:
        pytest.skip("the LoCoMo conversations are not here")

    transcript = read_transcript(found[0])

    raw = json.loads(found[0].read_text())
    texts = [
        u["text"]
        for key, value in raw.items()
        if isinstance(value, list) and key != "qa"
        for u in value
    ]
    sides = [
        side
        for conversation in transcript.conversations
        for turn in conversation.turns
        for side in (turn.user, turn.assistant)
        if side
    ]
    assert len(sides) == len(texts)
    assert all(side.startswith(text) for side, text in zip(sides, texts, strict=True))


def _data_places() -> list[Path]:
    here = Path(__file__).resolve()
    return [
        parent / place for parent in here.parents for place in ("data/locomo", "shared/data/locomo")
    ]
