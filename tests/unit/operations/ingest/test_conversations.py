"""Ingest publishes what an agent would have published, the same each time."""

import json
import os

import pytest
from memorybus.config.settings import Settings
from memorybus.errors import EventTooLarge, InvalidEvent
from memorybus_console.operations.ingest import conversations
from memorybus_console.operations.ingest.asked_history import AskedHistory
from memorybus_console.operations.ingest.conversations import FilePublisher
from memorybus_console.operations.ingest.foreign.records import ForeignError
from memorybus_console.operations.ingest.reading.model import TranscriptError
from memorybus_console.operations.ingest.report import (
    IngestReport,
    RefusedInput,
    UnreadableInput,
    sum_reports,
)


class RecordingSession:
    """A session that notes what it is told."""

    def __init__(self, calls, session_id):
        self.calls = calls
        self.id = session_id

    def switched_to(self, new_id, **more):
        """Note the switch."""
        self.calls.append(("switch", self.id, new_id, more))
        return RecordingSession(self.calls, new_id)

    def turn_completed(self, user, assistant, **more):
        """Note the turn; refuse one that is too large."""
        if user == "huge":
            raise EventTooLarge("2 MiB is more than event_max_bytes")
        self.calls.append(("turn", self.id, user, assistant, more))


class RecordingBus:
    """A bus that notes what it is told."""

    def __init__(self):
        self.calls = []
        self.settings = Settings()

    def session(self, session_id, **more):
        """Open a session; refuse an id that is none."""
        if session_id == "bad":
            raise InvalidEvent("not an id")
        self.calls.append(("session", session_id, more))
        return RecordingSession(self.calls, session_id)


@pytest.fixture
def write(tmp_path):
    """Write a file of one of the two formats."""

    def write(name, *lines):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(json.dumps(line) for line in lines))
        os.utime(path, (1_700_000_000, 1_700_000_000))
        return path

    return write


def said(text, **more):
    """Return a user's message."""
    return {"role": "user", "content": text} | more


LOCOMO = {
    "speaker_a": "Ann",
    "speaker_b": "Bo",
    "session_1": [{"speaker": "Ann", "text": "one"}],
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_2": [{"speaker": "Bo", "text": "two"}],
    "session_2_date_time": "2:56 pm on 8 May, 2023",
}


def published(path, **more):
    """Publish a file to a recording bus; return its calls and the result."""
    (source,), refused = conversations.load_files([path])
    assert refused == []
    bus, ticks = RecordingBus(), []
    options = {"agent": None, "user": None} | more
    with AskedHistory() as asked:
        publisher = FilePublisher(bus, asked, on_turn=lambda: ticks.append(1), **options)
        done = publisher.publish(source)
    return bus.calls, done, len(ticks)


def test_turns_carry_their_ordinal_and_a_time_that_stays(write):
    """Ids and payloads are the same on a second run, so nothing is added (G2)."""
    path = write("chat.jsonl", said("a"), said("b", timestamp=1_600_000_000))

    calls, done, _ = published(path, user="ana", agent="pilot")

    (_, session, options), *turns = calls
    assert session == "chat"
    assert (options["user"], options["agent"]) == ("ana", "pilot")
    assert options["at"] == 1_600_000_000_000
    assert [(t[2], t[4]["ordinal"], t[4]["at"]) for t in turns] == [
        ("a", 0, 1_600_000_000_000),
        ("b", 1, 1_600_000_000_000),
    ]
    assert done.turns == 2
    assert published(path, user="ana", agent="pilot")[0] == calls


def test_without_any_time_the_files_own_is_used(write):
    """A transcript without times happened when its file was last written."""
    calls, _, _ = published(write("chat.jsonl", said("a")))

    assert calls[0][2]["at"] == calls[1][4]["at"] == 1_700_000_000_000


def test_sessions_of_a_long_conversation_are_linked(write):
    """The first session starts the lineage, the next resumes it, at its own time."""
    calls, _, _ = published(write("seven.json", LOCOMO))

    start, turn, switch, second = calls
    assert start[1] == "seven:session_1"
    assert start[2]["user"] == "Ann"
    assert turn[4]["user_name"] == "Ann"
    assert switch[1:3] == ("seven:session_1", "seven:session_2")
    assert switch[3] == {"reason": "resume", "at": 1_683_557_760_000}
    assert second[1:4] == ("seven:session_2", "", "two")


def test_a_given_user_goes_before_the_speaker(write):
    """--user decides, whoever speaks in the file."""
    calls, _, _ = published(write("seven.json", LOCOMO), user="ana")

    assert calls[0][2]["user"] == "ana"


def test_a_refused_turn_is_named_and_the_rest_goes_on(write):
    """One event over the limit costs nothing but itself."""
    calls, done, ticks = published(write("chat.jsonl", said("a"), said("huge"), said("c")))

    assert [c[2] for c in calls if c[0] == "turn"] == ["a", "c"]
    assert [c[4]["ordinal"] for c in calls if c[0] == "turn"] == [0, 2]
    (refusal,) = done.refused
    assert refusal.what.endswith("chat.jsonl: chat: turn 2")
    assert "event_max_bytes" in refusal.why
    assert ticks == 3


def test_a_file_is_refused_if_nothing_in_it_can_be_read(write, tmp_path):
    """A torn line is named, and the rest of its file is published; a file of nothing is refused."""
    bad, torn = tmp_path / "bad.jsonl", tmp_path / "torn.jsonl"
    bad.write_text("{oops\n")
    torn.write_text(json.dumps(said("fine")) + "\n{oops\n")
    good = write("good.jsonl", said("a"))

    sources, refused = conversations.load_files([bad, torn, good])

    assert [source.path for source in sources] == [torn, good]
    assert [r.what for r in refused] == [str(bad)]
    assert "bad.jsonl:1: not JSON" in refused[0].why
    _, done, _ = published(torn)
    assert (done.turns, done.unread, len(done.refused)) == (1, 1, 1)
    assert "torn.jsonl:2: not JSON" in done.refused[0].why


def test_two_different_files_do_not_mix_their_sessions(write):
    """Files of one name with different contents are told apart by refusing the second."""
    one, other = write("a/chat.jsonl", said("a")), write("b/chat.jsonl", said("b"))
    same = write("c/chat.jsonl", said("a"))

    sources, refused = conversations.load_files([one, other, same])

    assert [source.path for source in sources] == [one, same]
    assert "would mix" in refused[0].why


def test_files_may_share_a_session_that_they_name(write):
    """An id that begins like the file's name is the session's own if the file names it."""
    one = write("a/chat.jsonl", said("a", session="chat-7"))
    other = write("b/chat.jsonl", said("b", session="chat-7"))

    sources, refused = conversations.load_files([one, other])

    assert [source.path for source in sources] == [one, other]
    assert refused == []


def test_the_same_conversation_does_not_mix_with_itself(write):
    """It does not matter that only one of two equal files names the session."""
    named = write("a/x.jsonl", {"messages": [said("a")], "session": "chat"})
    unnamed = write("b/chat.jsonl", said("a"))

    sources, refused = conversations.load_files([named, unnamed])

    assert len(sources) == 2
    assert refused == []


def test_a_refused_session_is_named_and_the_others_go_on(write):
    """An id that the bus does not take costs its own session only."""
    path = write("chat.jsonl", said("a", session="bad"), said("b", session="good"))

    calls, done, _ = published(path)

    assert [call[1] for call in calls] == ["good", "good"]
    assert [r.what for r in done.refused] == [f"{path}: bad"]
    assert done.turns == 1


def test_counts_and_refusals_of_all_sources_are_added():
    """Each source counts, and refusals keep their order."""
    first, second = RefusedInput("a", "x"), RefusedInput("b", "y")
    talks = IngestReport(files=2, sessions=3, turns=7, skipped=1, refused=(first,))
    events = IngestReport(files=1, events=5, skipped=2, refused=(second,))
    assert sum_reports([talks, events]) == IngestReport(
        files=3, sessions=3, turns=7, events=5, skipped=3, refused=(first, second)
    )


@pytest.mark.parametrize(
    ("levels", "level"),
    [
        ([], None),
        ([None], None),
        ([None, "logged"], "logged"),
        (["spooled", None, "logged"], "spooled"),
    ],
)
def test_it_is_as_safe_as_its_least_safe_source(levels, level):
    """G1: `logged` is said only if Redis has all of it; what published nothing does not count."""
    assert sum_reports([IngestReport(level=one) for one in levels]).level == level


def test_what_is_left_out_is_added_by_kind():
    """Unreadable lines and what is dropped count over all sources."""
    first = IngestReport(unread=2, dropped={"reasoning": 1})
    second = IngestReport(unread=3, dropped={"reasoning": 2, "relations": 4})
    total = sum_reports([first, second])
    assert (total.unread, total.dropped) == (5, {"reasoning": 3, "relations": 4})


def _unreadable(error: UnreadableInput) -> RefusedInput:
    return RefusedInput.unreadable("a.jsonl", error)


@pytest.mark.parametrize(
    ("refusal", "shown"),
    [
        (RefusedInput("a.jsonl: s: turn 2", "too large"), "a.jsonl: s: turn 2: too large"),
        (_unreadable(TranscriptError("not JSON", "a.jsonl:2")), "a.jsonl:2: not JSON"),
        (_unreadable(ForeignError("a page without 'items'")), "a.jsonl: a page without 'items'"),
        (_unreadable(ForeignError("a.jsonl is no page")), "a.jsonl: a.jsonl is no page"),
    ],
)
def test_a_place_is_named_once(refusal, shown):
    """Whether the reason has its own place is known, not read from its words."""
    assert refusal.describe() == shown
