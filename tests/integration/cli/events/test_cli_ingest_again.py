"""``memorybus ingest`` of files that come again: grown, cut, renamed, edited, after a forget."""

import json
import os
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from helpers.providers.digested import CASES, Told, digest_after
from helpers.stories.published import envelopes
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.archive.tombstones import Tombstone
from memorybus.config.settings import Settings
from memorybus.events import SessionSwitched, TurnCompleted
from memorybus.ids import new_id
from memorybus.query.query import Query
from memorybus.redis.connect import connect_redis
from memorybus_console.cli import main
from memorybus_console.operations.archive import open_archive
from memorybus_console.operations.ingest import conversations
from memorybus_workers.archiving.archiver import run_once

Line = dict[str, Any]
Form = tuple[str, str]
DAY = 86_400_000
SEPTEMBER = 1_788_249_600_000
"""The first of September 2026, milliseconds."""


class Desk:
    """Ingests files; between two commands everything is sealed and Redis forgets all ids."""

    def __init__(self, settings: Settings, folder: Path, capsys: pytest.CaptureFixture[str]):
        self.settings = settings
        self.folder = folder
        self._capsys = capsys
        self._written = SEPTEMBER

    def write(self, name: str, *lines: Line) -> Path:
        """Write a file twenty days after the one before."""
        self._written += 20 * DAY
        path = self.folder / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        os.utime(path, (self._written / 1000, self._written / 1000))
        return path

    def run(self, *words: object, code: int = 0) -> dict[str, Any]:
        """Ingest files, and return the report."""
        self._capsys.readouterr()
        assert main(["ingest", *map(str, words), "--json"]) == code
        report: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        self.forget_ids()
        return report

    def forget_ids(self) -> None:
        """Seal the log, and let the window of known ids pass."""
        run_once(self.settings)
        with closing(connect_redis(self.settings)) as redis:
            for name in redis.scan_iter(f"*{self.settings.namespace}*seen*"):
                redis.delete(name)

    def ingest(self, name: str, *lines: Line) -> tuple[int, ...]:
        """Write and ingest a file; return how many turns are new, replaced, known and refused."""
        return counts(self.run(self.write(name, *lines)))

    def live(self, user: str = "default") -> list[Form]:
        """Return the turns of a person that no rewind took back, in the order of the log."""
        events = [event for event in envelopes(self.settings) if event.scope.user == user]
        gone = {
            event_id
            for one in events
            if isinstance(one.event, SessionSwitched)
            for event_id in one.event.retracted
        }
        return [
            (one.event.user, one.event.assistant)
            for one in events
            if isinstance(one.event, TurnCompleted) and one.id not in gone
        ]

    def forget(self, user: str, upto: int) -> None:
        """Forget what a person said up to a time."""
        query = Query(users=(user,), upto=upto)
        with closing(open_archive(self.settings)) as archive:
            assert archive.forget(Tombstone(id=new_id(), query=query))


def counts(report: dict[str, Any]) -> tuple[int, ...]:
    """Return how many turns are new, replaced, known and refused."""
    new = report["turns"] - report["known"] - report["replaced"]
    return new, report["replaced"], report["known"], report["refused_turns"]


@pytest.fixture(name="desk")
def _desk(ready: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    folder = tmp_path / "files"
    folder.mkdir()
    return Desk(ready, folder, capsys)


def turn(
    user: str, answer: str, day: int | None = None, session: str = "", **more: Any
) -> list[Line]:
    """Return the messages of a turn, with a time if a day is given, without answer if it is ""."""
    said = [
        {"role": "user", "content": user} | more,
        *([{"role": "assistant", "content": answer}] if answer else []),
    ]
    time = {} if day is None else {"timestamp": SEPTEMBER + day * DAY}
    return [one | time | ({"session_id": session} if session else {}) for one in said]


@pytest.mark.parametrize("session", ["kitchen", ""])
@pytest.mark.parametrize("timed", [True, False])
def test_a_grown_turn_replaces_its_shorter_form(desk, session, timed):
    """G2: what a file had is known, its longer last turn replaces the shorter one."""
    days = (1, 2, 3, 4) if timed else (None,) * 4
    first, second = turn("oven?", "Smeg.", days[0], session), turn("hot?", "230.", days[1], session)
    short, grown = turn("Otto?", "", days[2], session), turn("Otto?", "Hello.", days[2], session)
    last = turn("And now?", "Bread.", days[3], session)

    assert desk.ingest("a.jsonl", *first, *second, *short) == (3, 0, 0, 0)
    assert desk.ingest("a.jsonl", *first, *second, *grown, *last) == (1, 1, 2, 0)
    whole = [("oven?", "Smeg."), ("hot?", "230."), ("Otto?", "Hello."), ("And now?", "Bread.")]
    assert desk.live() == whole
    assert desk.ingest("a.jsonl", *first, *second, *grown, *last) == (0, 0, 4, 0)
    assert desk.ingest("a.jsonl", *first, *second, *short) == (0, 0, 3, 0)
    assert desk.ingest("b.jsonl", *second, *grown, *last) == (0, 0, 3, 0)
    assert desk.ingest("a.jsonl", *grown[1:], *last) == (0, 0, 2, 0)
    assert desk.live() == whole


def test_the_older_form_is_shown_no_more(desk, capsys):
    """Lists, searches and exports of events show the newest form alone; its id shows any event."""
    desk.ingest("a.jsonl", *turn("Otto?", "", 1, "k"))
    desk.ingest("a.jsonl", *turn("Otto?", "Hello.", 1, "k"))
    shown = []
    for words in (
        ["events", "ls", "--session", "k", "--json"],
        ["events", "ls", "--type", "TurnCompleted", "--json"],
        ["events", "search", "Otto?", "--json"],
        ["export", "--user", "default"],
    ):
        assert main(words) == 0
        shown.append(capsys.readouterr().out)
    assert [(text.count('"Otto?"'), text.count('"Hello."')) for text in shown] == [(2, 2)] * 4


@pytest.mark.parametrize("session", ["kitchen", ""])
def test_a_cut_file_adds_nothing(desk, session):
    """G2: lines may be missing at the head, also within a turn, and at the end."""
    lines = [
        line for day in (1, 2, 3, 4) for line in turn(f"q{day}", f"answer {day}.", day, session)
    ]
    desk.ingest("a.jsonl", *lines)
    for first in range(1, len(lines)):
        assert desk.ingest("a.jsonl", *lines[first:])[:2] == (0, 0), f"from line {first}"
    for end in range(1, len(lines)):
        assert desk.ingest("a.jsonl", *lines[:end])[:2] == (0, 0), f"up to line {end}"
    assert len(desk.live()) == 4


@pytest.mark.parametrize("days", [(1, 2, 3), (None, None, None)])
def test_a_renamed_file_adds_nothing_and_grows_its_session(desk, days):
    """G2: a file that names no session is known by what it says; its news join the same session."""
    old = [*turn("a?", "A.", days[0]), *turn("b?", "B.", days[1])]
    desk.ingest("old.jsonl", *old)
    assert desk.ingest("new.jsonl", *old) == (0, 0, 2, 0)
    assert desk.ingest("newer.jsonl", *old, *turn("c?", "C.", days[2])) == (1, 0, 2, 0)
    assert {event.session.id for event in envelopes(desk.settings)} == {"old"}


def test_a_renamed_session_adds_nothing(desk):
    """G2: a session that a file names anew is known by its times or its messages' ids."""
    old, new = (
        [*turn("a?", "A.", 1, name), *turn("b?", "B.", 2, name)] for name in ("before", "after")
    )
    marked, again = (
        [*turn("c?", "C.", None, name, id="m-1"), *turn("d?", "D.", None, name, id="m-2")]
        for name in ("left", "right")
    )
    desk.ingest("a.jsonl", *old, *marked)
    assert desk.ingest("a.jsonl", *new, *again) == (0, 0, 4, 0)


def test_other_sessions_may_say_the_same(desk):
    """Named sessions of the same words are two, without times and beside each other in a file."""
    assert desk.ingest("a.jsonl", *turn("hi", "Hi!", None, "s1")) == (1, 0, 0, 0)
    assert desk.ingest("b.jsonl", *turn("hi", "Hi!", None, "s2")) == (1, 0, 0, 0)
    both = [*turn("hi", "Hi!", 1, "s3"), *turn("hi", "Hi!", 1, "s4")]
    assert desk.ingest("c.jsonl", *both) == (2, 0, 0, 0)
    assert desk.ingest("c.jsonl", *both) == (0, 0, 2, 0)


@pytest.mark.parametrize("days", [(1, 2, 3), (None, None, None)])
def test_the_same_words_twice_stay_twice(desk, days):
    """What was said twice in a session is there twice, however often the file comes."""
    lines = [*turn("ok", "Fine.", days[0], "s"), *turn("ok", "Fine.", days[1], "s")]
    assert desk.ingest("a.jsonl", *lines) == (2, 0, 0, 0)
    assert desk.ingest("a.jsonl", *lines) == (0, 0, 2, 0)
    assert desk.ingest("a.jsonl", *lines, *turn("ok", "Good.", days[2], "s")) == (1, 0, 2, 0)
    assert desk.live() == [("ok", "Fine."), ("ok", "Fine."), ("ok", "Good.")]


def test_a_file_may_be_split_joined_and_ordered_anew(desk):
    """G2: parts, two files in one, other orders of lines and fields, other spaces: all is known."""
    one = [line for day in (1, 2, 3) for line in turn(f"one {day}", f"A{day}.", day)]
    two = [line for day in (4, 5, 6) for line in turn(f"two {day}", f"B{day}.", day)]
    desk.ingest("one.jsonl", *one[:2])
    desk.ingest("rest.jsonl", *one[2:])
    desk.ingest("two.jsonl", *two)
    assert desk.ingest("both.jsonl", *one, *two) == (0, 0, 6, 0)
    spaced = [dict(reversed((line | {"content": f" {line['content']}\n"}).items())) for line in two]
    assert desk.ingest("two.jsonl", *spaced) == (0, 0, 3, 0)
    assert desk.ingest("two.jsonl", *reversed(two)) == (0, 0, 3, 0)


@pytest.mark.parametrize("days", [(1, 2, 3), (None, None, None)])
def test_an_edited_answer_replaces_the_former_one(desk, days):
    """Another answer stands for the former one, which does not come back with an old copy."""
    before, after = turn("a?", "A.", days[0], "s"), turn("c?", "C.", days[2], "s")
    old, new = turn("b?", "A long answer.", days[1], "s"), turn("b?", "Short.", days[1], "s")
    desk.ingest("a.jsonl", *before, *old, *after)
    assert desk.ingest("a.jsonl", *before, *new, *after) == (0, 1, 2, 0)
    assert desk.ingest("a.jsonl", *before, *old, *after) == (0, 0, 3, 0)
    assert sorted(desk.live()) == [("a?", "A."), ("b?", "Short."), ("c?", "C.")]


def test_numbers_of_lines_are_no_ids(desk):
    """A mere number that another file gives to another message identifies nothing."""
    desk.ingest("a.jsonl", *turn("monday?", "M.", 1, "s", id=1))
    assert desk.ingest("a.jsonl", *turn("tuesday?", "T.", 2, "s", id=1)) == (1, 0, 0, 0)
    assert len(desk.live()) == 2


def test_edited_words_are_known_by_the_messages_id(desk):
    """A person's words may be edited if the source's own id of the message stays."""
    desk.ingest("a.jsonl", *turn("where is he?", "There.", 1, "s", id="m-1"))
    assert desk.ingest("a.jsonl", *turn("where is it?", "There.", 1, "s", id="m-1")) == (0, 1, 0, 0)
    assert desk.live() == [("where is it?", "There.")]


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("session", ["clinic", ""])
def test_what_was_forgotten_is_refused(desk, session, timed):
    """Cut, grown or renamed, what a forgotten person said before is refused, and said why."""
    lines = [
        line
        for day in (1, 2, 3)
        for line in turn(f"latex{day}", f"Noted {day}.", day if timed else None, session)
    ]
    path = desk.write("c.jsonl", *lines)
    desk.run(path, "--user", "cleo")
    desk.forget("cleo", SEPTEMBER + 30 * DAY)
    for name, some in {
        "c": lines[2:],
        "d": lines,
        "e": [*lines[:-1], lines[-1] | {"content": "More"}],
    }.items():
        report = desk.run(desk.write(f"{name}.jsonl", *some), "--user", "cleo", code=1)
        assert counts(report) == (0, 0, 0, len(some) // 2)
        assert report["new_events"] == 0
        assert "was forgotten" in report["refused"][0]["why"]
    assert desk.live("cleo") == []
    later = turn("I am back", "Welcome.", 50, session)
    report = desk.run(
        desk.write("c.jsonl", *(lines if timed else []), *later), "--user", "cleo", code=int(timed)
    )
    assert counts(report) == (1, 0, 0, 3 * timed)
    assert desk.run(desk.write("x.jsonl", *lines), "--user", "dora")["new_events"] == 4


def test_a_turn_that_was_taken_back_stays_away(desk):
    """A turn that a person or an operator took back comes in no form again."""
    desk.ingest("a.jsonl", *turn("my PIN is 1", "ok", 1, "s"))
    (mine,) = [one for one in envelopes(desk.settings) if isinstance(one.event, TurnCompleted)]
    with MemoryBus.connect(desk.settings) as bus:
        Session(bus, mine.scope, mine.session).undo(mine.id)
        assert bus.flush("logged", 10)
    assert desk.ingest("a.jsonl", *turn("my PIN is 1", "ok, noted", 1, "s")) == (0, 0, 1, 0)
    assert desk.live() == []


def zep(uuid: str, role: str, content: str, day: int) -> Line:
    """Return a message as Zep exports it."""
    at = f"2026-09-{day:02}T08:00:00Z"
    return {"uuid": uuid, "role": role, "content": content, "created_at": at, "thread_id": "t"}


def test_a_foreign_export_that_grew_replaces_its_last_turn(desk):
    """G2: conversations of other systems are known by the ids of their messages, cut or grown."""
    old = [zep("1", "user", "oven?", 1), zep("2", "assistant", "Smeg.", 1)]
    half = [zep("3", "user", "Otto?", 2)]
    grown = [*half, zep("4", "assistant", "Hello.", 2), zep("5", "user", "And?", 3)]

    def ingest(*lines: Line) -> tuple[int, ...]:
        report = desk.run("--from", "zep", desk.write("z.jsonl", *lines))
        return report["new_events"], report["replaced"], report["known"], report["refused_turns"]

    assert ingest(*old, *half) == (3, 0, 0, 0)
    assert ingest(*old, *grown) == (3, 1, 1, 0)
    assert ingest(*grown[1:]) == (0, 0, 2, 0)
    assert ingest(*old, *half) == (0, 0, 2, 0)
    assert desk.live() == [("oven?", "Smeg."), ("Otto?", "Hello."), ("And?", "")]


def test_foreign_memories_of_a_forgotten_person_are_refused(desk):
    """A memory that was changed since, or that has no time, does not come back either."""
    kept = {"id": "1", "memory": "Ann sails", "user_id": "ann", "created_at": "2026-09-01"}
    desk.run("--from", "mem0", desk.write("m.json", kept))
    desk.forget("ann", SEPTEMBER + 30 * DAY)
    changed = [kept | {"memory": "Ann rows"}, {"id": "2", "memory": "Ann skis", "user_id": "ann"}]
    report = desk.run("--from", "mem0", desk.write("m.jsonl", *changed), code=1)
    assert (report["new_events"], report["refused_turns"]) == (0, 2)
    assert {"was forgotten" in one["why"] for one in report["refused"]} == {True}
    later = kept | {"memory": "Ann flies", "created_at": "2026-12-01"}
    assert desk.run("--from", "mem0", desk.write("m.json", later))["new_events"] == 1


def test_events_of_a_forgotten_person_are_refused_under_other_ids(desk):
    """Lines of events that the log never had are forgotten, too, if a tombstone covers them."""
    desk.ingest("a.jsonl", *turn("a?", "A.", 1, "s"))
    path = desk.folder / "out.jsonl"
    assert main(["export", str(path), "--user", "default"]) == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    desk.forget("default", SEPTEMBER + 30 * DAY)
    for some in (lines, [line | {"id": new_id()} for line in lines]):
        report = desk.run(desk.write("again.jsonl", *some), code=1)
        assert (report["new_events"], report["refused_turns"]) == (0, len(lines))


def test_an_interrupted_replacing_is_finished_by_the_next_run(desk, monkeypatch):
    """G2: Ctrl-C between a newer form and its rewind leaves both; the next run leaves one."""
    desk.ingest("a.jsonl", *turn("Otto?", "", 1, "k"))
    path = desk.write("a.jsonl", *turn("Otto?", "Hello.", 1, "k"))
    with monkeypatch.context() as patched:
        patched.setattr(conversations, "_retract", _interrupted)
        assert main(["ingest", str(path)]) == 130
    desk.forget_ids()
    assert desk.live() == [("Otto?", ""), ("Otto?", "Hello.")]
    assert desk.run(path)["new_events"] == 1
    assert desk.live() == [("Otto?", "Hello.")]
    assert desk.run(path)["new_events"] == 0


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_two_ingests_at_once_enter_each_turn_once(desk):
    """G2: two processes that read the same file at the same time derive the same ids."""
    lines = [line for day in range(200) for line in turn(f"q{day}", f"a{day}", day, "k")]
    path = desk.write("a.jsonl", *lines)
    command = [sys.executable, "-m", "memorybus", "ingest", str(path), "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    reports = [json.loads(one.communicate(timeout=60)[0]) for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert [one["turns"] for one in reports] == [200, 200]
    assert len(desk.live()) == 200


@pytest.mark.parametrize("kind", CASES)
def test_a_rebuild_of_a_grown_conversation_is_its_live_state(desk, tmp_path, kind):
    """G8: a store that had the shorter form has what a rebuild gives, and nothing of that form."""
    first, last = turn("oven?", "Smeg.", 1, "k"), turn("The sourdough is Otto.", "", 2, "k")
    grown = turn("The sourdough is Otto.", "Hello Otto.", 2, "k")
    desk.ingest("a.jsonl", *first, *last)
    desk.ingest("a.jsonl", *first, *grown)
    events = [Told(event) for event in envelopes(desk.settings)]
    turns = [one.envelope.event for one in events if isinstance(one.envelope.event, TurnCompleted)]
    older = {one.replaces for one in turns}
    without = [one for one in events if one.envelope.id not in older]
    assert len(without) == len(events) - 1
    rng = random.Random(7)
    digests = [
        digest_after(kind, tmp_path / str(number), some, rng, most)
        for number, (some, most) in enumerate(((events, 1), (events, 9), (without, 1)))
    ]
    assert digests[0] == digests[1] == digests[2]
    assert bool(digests[0]) == (kind != "builtin"), "its files keep no turns"
