"""Reconcile: what Hermes stored and the bus never got, brought into a real log, once."""

import io
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock
from helpers.hermes import hermes_state
from helpers.hermes.hermes_state import SUMMARY, HermesState
from helpers.processes.waiting import wait_until
from helpers.redis.log import logged
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.archive.tombstones import Tombstone
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings, to_environ
from memorybus.errors import LogUnavailable
from memorybus.events import (
    Envelope,
    MemoryWritten,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)
from memorybus.outbox.spool import write_note
from memorybus.query.query import Query
from memorybus.receipt import SpoolStats
from memorybus_console.operations.archive import open_archive
from memorybus_console.views.reconciliation import report_parts
from memorybus_hermes.home import HermesHome, find_home
from memorybus_hermes.reconcile.reconcile import (
    ReconcileReport,
    ReconcileRequest,
    Reconciliation,
    SpoolsBusy,
)
from rich.console import Console

pytestmark = pytest.mark.timeout(120)

STANDING = """
import os, signal, sys
from memorybus_console.cli.app import main
from memorybus_hermes.reconcile.importing import Importer

count, publish = int(sys.argv.pop(1)), Importer.turn

def stand_still(self, *turn):
    done = publish(self, *turn)
    if self.published == count:
        assert self._bus.flush("logged", 20)
        os.kill(os.getpid(), signal.SIGSTOP)
    return done

Importer.turn = stand_still
sys.exit(main())
"""
"""The command line; an import stops itself (SIGSTOP) once so many turns of it are in the log."""


class Silent:
    """Progress that nobody looks at."""

    def begin_stage(self, what: str, total: int) -> None:
        """Ignore a stage."""

    def advance(self, count: int) -> None:
        """Ignore a step."""

    def show_waiting(self, unsent: int) -> None:
        """Ignore a wait."""


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> HermesHome:
    """Return a Hermes home of the profile ``coder``."""
    path = tmp_path / "hermes"
    path.mkdir()
    return HermesHome(path, "coder")


@pytest.fixture(name="state")
def _state(home: HermesHome) -> Iterator[HermesState]:
    """Return an empty state.db in the home."""
    with HermesState(home.path) as state:
        yield state


Run = Callable[..., ReconcileReport]


@pytest.fixture(name="run")
def _run(home: HermesHome, settings: Settings) -> Run:
    """Reconcile once."""

    return partial(reconcile, home, settings)


def reconcile(home: HermesHome, settings: Settings, clock: Clock = SYSTEM, **request: Any) -> Any:
    """Reconcile a home once; return the report."""
    return Reconciliation(home, settings, ReconcileRequest(**request), clock, Silent()).run()


@contextmanager
def live(settings: Settings, name: str = "s", agent: str = "coder") -> Iterator[Session]:
    """Yield a session as the plugin of a profile has it; in the end the log has what it told."""
    with MemoryBus.connect(settings) as bus:
        yield bus.session(name, agent=agent, platform="cli", warm=False)
        assert bus.flush("logged", 25)


def keep(home: HermesHome, name: str, text: str) -> None:
    """Write one of Hermes's memory files."""
    home.memories.mkdir(exist_ok=True)
    (home.memories / name).write_text(text)


def in_log(settings: Settings) -> list[Envelope]:
    """Return everything in the log."""
    return [event.envelope for event in logged(settings)]


def turns(settings: Settings) -> Counter[tuple[str, str, str]]:
    """Return the turns in the log: session, words, answer, and how often."""
    return Counter(
        (e.session.id, e.event.user, e.event.assistant)
        for e in in_log(settings)
        if isinstance(e.event, TurnCompleted)
    )


def test_a_history_is_imported_once(run, state, settings):
    """All turns come with their own times, session and scope; a second run adds nothing (G2)."""
    chat = {"chat_id": "7", "session_key": "agent:main:telegram:dm:7", "cwd": "/srv"}
    state.session("s", source="telegram", user="ilse", title="Ferries", **chat)
    state.tool_turn("s", "When does it leave?", "At 06:40.")
    at = int(state.now * 1000)
    state.end("s", "cli_close")
    assert (run(apply=True).published, run(apply=True).published) == (1, 0)
    start, turn, end = sorted(in_log(settings), key=lambda e: e.at)
    assert isinstance(start.event, SessionStarted)
    assert start.event.title == "Ferries"
    key = {"gateway_session_key": "agent:main:telegram:dm:7"}
    assert start.event.details == {**key, "chat_id": "7", "cwd": "/srv"}
    assert isinstance(turn.event, TurnCompleted)
    assert (turn.at, turn.event.model) == (at, "m")
    assert [m["role"] for m in turn.event.messages] == ["user", "assistant", "tool", "assistant"]
    scope = turn.scope
    assert (scope.agent, scope.user, scope.workspace) == ("coder", "ilse", "")
    assert scope.platform == "telegram"
    assert isinstance(end.event, SessionEnded)


def test_what_was_forgotten_stays_out(run, state, settings, home):
    """Turns and memory files of a forgotten person do not come back from Hermes's own storage."""
    state.session("s", user="ilse")
    state.turn("s", "My PIN is 4711", "Noted.")
    keep(home, "USER.md", "Ilse sails")
    assert run(apply=True).published == 1
    upto = max(one.at for one in in_log(settings))
    with closing(open_archive(settings)) as archive:
        archive.forget(Tombstone(id="t", query=Query(agents=("coder",), upto=upto)))
    count = len(in_log(settings))
    report = run(apply=True)
    assert (report.published, report.missing, report.memories) == (0, 0, 0)
    assert report.forgotten == 2
    assert len(in_log(settings)) == count
    state.now = upto / 1000 + 1
    state.turn("s", "I am back", "Welcome.")
    assert run(apply=True, settle=-60).published == 1


def test_a_dry_run_publishes_nothing(run, state, settings):
    """Without --apply it only says what would be published, session by session."""
    state.session("s")
    state.turn("s", "q", "a")
    report = run()
    assert (report.applied, report.missing, report.published) == (False, 1, 0)
    assert [(one.session, one.missing) for one in report.sessions] == [("s", 1)]
    assert in_log(settings) == []


def test_turns_of_a_live_plugin_are_recognised(run, state, settings):
    """A turn that a plugin published is known by its texts, also one with a footer; how often."""
    state.session("s")
    with live(settings) as session:
        for number, answer in enumerate(("a0", "a1")):
            state.turn("s", f"q{number}", answer)
            session.turn_completed(f"q{number}", answer, ordinal=number)
        state.turn("s", "write it", "Done.")
        footed = "Done.\n\n(one file was not written)"
        session.turn_completed("write it", footed, ordinal=2, at=int(state.now * 1000) + 300)
        session.turn_completed("again", "a", ordinal=3)
    state.turn("s", "again", "a")
    state.turn("s", "again", "a")
    state.turn("s", "lost", "never published")
    report = run(apply=True)
    assert (report.stored_turns, report.missing, report.published) == (6, 2, 2)
    assert turns(settings)["s", "again", "a"] == 2
    assert turns(settings)["s", "lost", "never published"] == 1


def test_the_same_words_close_together_are_told_apart(run, state, settings):
    """An exact match is never taken by another turn of the same words."""
    state.session("s")
    state.turn("s", "continue", "first")
    state.turn("s", "continue", "second")
    with live(settings) as session:
        session.turn_completed("continue", "second", ordinal=1, at=int(state.now * 1000))
    run(apply=True)
    assert turns(settings) == {("s", "continue", "first"): 1, ("s", "continue", "second"): 1}


def test_the_lineage_is_kept(run, state, settings):
    """A branch and a compression under a new id keep their root and bring no copies along."""
    state.session("root")
    state.turn("root", "q0", "a0")
    state.end("root", "branched")
    state.session("twig", parent="root", config={"_branched_from": "root"})
    state.store("twig", [("user", "q0"), ("assistant", "a0")])
    state.turn("twig", "q1", "a1")
    state.end("twig", "compression")
    state.session("next", parent="twig")
    state.store("next", [("user", SUMMARY), ("assistant", "a1")])
    state.turn("next", "q2", "a2")
    run(apply=True)
    assert turns(settings) == {
        ("root", "q0", "a0"): 1,
        ("twig", "q1", "a1"): 1,
        ("next", "q2", "a2"): 1,
    }
    by_session = {e.session.id: e for e in in_log(settings) if isinstance(e.event, TurnCompleted)}
    assert {e.session.root for e in by_session.values()} == {"root"}
    assert by_session["next"].session.parent == "twig"
    reasons = {
        e.session.id: e.event.reason
        for e in in_log(settings)
        if isinstance(e.event, SessionStarted | SessionSwitched)
    }
    assert reasons == {"root": "start", "twig": "branch", "next": "compression"}
    assert not [e for e in in_log(settings) if isinstance(e.event, SessionEnded)]


def test_what_a_plugin_knows_of_a_session_holds(run, state, settings):
    """A session that the log has another root for keeps it, and its order (G3)."""
    state.session("old")
    state.end("old", "compression")
    state.session("s", parent="old")
    state.turn("s", "q", "a")
    with live(settings):
        pass
    run(apply=True)
    roots = {e.session.root for e in in_log(settings) if e.session.id == "s"}
    assert roots == {"s"}


def test_what_was_undone_without_a_word_is_retracted_once(run, state, settings):
    """A gateway's `/undo` tells nobody: what the log has of it is retracted, once, in its order."""
    state.session("s")
    with live(settings) as session:
        said = ("tea", "TEA"), ("my PIN is 4711", "Noted."), ("tea", "TEA"), ("footed", "f")
        receipts, rows = [], []
        for number, (user, answer) in enumerate(said):
            rows.append(state.say("s", "user", user))
            state.say("s", "assistant", answer)
            told = answer + " *" * (user == "footed")  # Hermes hands some over with a footer
            at = int(state.now * 1000)
            receipts.append(session.turn_completed(user, told, ordinal=number, at=at))
    state.undo("s", rows[1])
    state.turn("s", "tea", "TEA")  # said again, and lost
    dry = run()
    assert (dry.undone, dry.missing) == (2, 0), "of three times tea two stand, and two are logged"
    assert [(one.session, one.undone) for one in dry.sessions] == [("s", 2)]
    assert [run(apply=True).undone, run(apply=True).undone] == [2, 0]
    (rewind,) = [e for e in in_log(settings) if isinstance(e.event, SessionSwitched)]
    assert rewind.event.retracted == (receipts[1].event_id, receipts[3].event_id)
    assert (rewind.event.rewound, rewind.key, rewind.session) == (True, session.key, session.ref)


def test_what_a_live_plugin_retracted_is_not_retracted_again(run, state, settings):
    """A rewind that the log has needs no other; and the same words said again stand."""
    state.session("s")
    first = state.say("s", "user", "my PIN is 4711")
    state.say("s", "assistant", "Noted.")
    state.undo("s", first)
    state.turn("s", "my PIN is 4711", "Noted.")
    with live(settings) as session:
        after = session.undo(session.turn_completed("my PIN is 4711", "Noted.", ordinal=0))
        after.turn_completed("my PIN is 4711", "Noted.", ordinal=0)
    report = run(apply=True)
    assert (report.undone, report.missing) == (0, 0)


def test_cron_jobs_and_sub_agents_are_left_out(run, state, settings):
    """Sessions that are not the person's are counted and not published."""
    state.session("s")
    for name, more in (
        ("cron", {"source": "cron"}),
        ("sub", {"source": "subagent", "parent": "s"}),
        ("marked", {"config": {"_delegate_from": "s"}, "parent": "s"}),
        ("plain", {"parent": "s"}),
    ):
        state.session(name, **more)
        state.turn(name, "work", "done")
    report = run(apply=True)
    assert (report.other_sessions, report.stored_turns) == (4, 0)
    assert in_log(settings) == []


def test_young_turns_are_left_for_the_next_run(run, home, settings):
    """A turn younger than 30 s may be about to be published: it is counted, not published."""
    with HermesState(home.path, at=SYSTEM.now_ms() / 1000 - 10) as state:
        state.session("s")
        state.turn("s", "q", "a")
    report = run(apply=True)
    assert (report.recent, report.published) == (1, 0)
    assert run(apply=True, settle=0).published == 1


def test_memory_files_are_imported_once(run, state, home):
    """Every entry of MEMORY.md and USER.md that the log lacks becomes one addition."""
    state.session("s")
    keep(home, "MEMORY.md", "The mill is old.\n§\nQuinces in October.\n")
    keep(home, "USER.md", "Ilse collects sea glass.")
    assert [run().memories, run(apply=True).memories, run(apply=True).memories] == [3, 3, 0]


def test_a_memory_written_live_is_not_imported(run, state, home, settings):
    """An entry that a hook has told of is in the log already."""
    state.session("s")
    keep(home, "MEMORY.md", "The mill is old.\n§\nNew.")
    with live(settings) as session:
        session.memory_written("add", "The mill is old.")
    run(apply=True)
    written = [e.event.content for e in in_log(settings) if isinstance(e.event, MemoryWritten)]
    assert sorted(written) == ["New.", "The mill is old."]


def test_only_one_session_or_only_since(run, state, settings):
    """--session and --since choose; copies of the family are still known as such."""
    state.session("s")
    state.turn("s", "q0", "a0")
    state.session("b", parent="s", config={"_branched_from": "s"})
    state.store("b", [("user", "q0"), ("assistant", "a0")])
    state.turn("b", "q1", "a1")
    since = int(state.now * 1000) - 1
    assert run(since=since).missing == 1
    run(apply=True, session="b")
    assert turns(settings) == {("b", "q1", "a1"): 1}


def test_hostile_text_is_published_and_shown_safely(run, state, settings):
    """Escape sequences in stored names and texts steer no terminal, and nothing is lost."""
    state.session("s\x1b[2J", title="\x1b]0;owned\x07")
    state.turn("s\x1b[2J", "q\x1b[31m\u202e", "a\x00")
    report = run(apply=True)
    assert report.published == 1
    console = Console(record=True, width=200, file=io.StringIO())
    for part in report_parts(report):
        console.print(part)
    assert "\x1b" not in console.export_text()


def test_without_a_log_nothing_is_compared(home, state, make_settings, short_dir):
    """Without Redis nobody knows what is missing: an error, and nothing is published."""
    state.session("s")
    settings = make_settings(url=f"unix://{short_dir}/none.sock")
    with pytest.raises(LogUnavailable):
        reconcile(home, settings, apply=True)


def test_what_a_dead_agent_spooled_is_not_published_twice(home, state, make_redis, make_settings):
    """Turns that wait in the spool of a killed agent go out first, and are recognised (G1, G2)."""
    server = make_redis(appendonly="yes")
    settings = make_settings(url=server.url)
    server.kill()
    state.session("s")
    state.turn("s", "q", "a")
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", agent="coder", platform="cli", warm=False)
        session.turn_completed("q", "a", ordinal=0)
        bus.close(timeout=0.1)
    server.start()
    dry = reconcile(home, settings)
    assert (dry.missing, dry.spooled_elsewhere) == (1, 2)
    wet = reconcile(home, settings, apply=True)
    assert (wet.missing, wet.spooled_elsewhere) == (0, 0)
    assert turns(settings) == {("s", "q", "a"): 1}


def test_what_a_living_agent_has_not_sent_is_waited_for(home, state, settings, fake_clock):
    """While a living agent's events are not in the log nobody knows what is missing."""
    state.session("s")
    state.turn("s", "q", "a")
    settings.spool_dir.mkdir(parents=True)
    spool = settings.spool_dir / "living.db"
    spool.touch()
    write_note(spool, SpoolStats(3, 900, 1))
    with FileLock(spool.with_suffix(".lock")), pytest.raises(SpoolsBusy, match="3 events"):
        reconcile(home, settings, fake_clock, apply=True)
    assert turns(settings) == {}


def test_an_id_that_the_bus_cannot_take_is_refused_alone(run, state, settings):
    """A session that is refused is told; the others are imported."""
    state.session("x" * 600)
    state.turn("x" * 600, "q", "a")
    state.session("s")
    state.turn("s", "q", "a")
    report = run(apply=True)
    assert (report.published, len(report.refused)) == (1, 1)
    assert list(turns(settings)) == [("s", "q", "a")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_goes_on(state, home, settings, number):
    """kill -9 or Ctrl-C in the middle, and again: every turn is in the log once (G1, G2)."""
    state.db.close()
    (home.path / "state.db").unlink()
    hermes_state.big(home.path, 1_200)
    for count in (50, 300):
        stopped_after(home, settings, count, number)
    here = find_home(home.path)  # the profile that the command takes it for
    report = reconcile(here, settings, apply=True)
    found = turns(settings)
    assert (len(found), max(found.values())) == (600, 1)
    assert report.published <= 300
    assert reconcile(here, settings).missing == 0


def test_another_profiles_session_is_not_this_ones(state, settings, run):
    """G1: what the log has of another profile's session of the same id is missing in this one's."""
    state.session("s")
    state.turn("s", "q", "a")
    with live(settings, agent="cook") as session:
        session.turn_completed("q", "a")
    assert run(apply=True).published == 1
    assert run().missing == 0
    assert {(e.scope.agent, e.session.id) for e in in_log(settings)} == {
        ("cook", "s"),
        ("coder", "s"),
    }


def stopped_after(home: HermesHome, settings: Settings, count: int, number: signal.Signals) -> None:
    """Import in a child process and send it a signal when the log has so many turns of it."""
    words = ["hermes", "reconcile", "--apply", "--home", str(home.path)]
    child = subprocess.Popen(
        [sys.executable, "-c", STANDING, str(count), *words],
        env=to_environ(settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        wait_until(lambda: stands(child), f"{count} turns are published", 60)
        child.send_signal(number)
        child.send_signal(signal.SIGCONT)
        _, said = child.communicate(timeout=40)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == {signal.SIGKILL: -9, signal.SIGINT: 130}[number]
    assert b"Traceback" not in said


def stands(child: "subprocess.Popen[bytes]") -> bool:
    """Say whether a child has stopped itself; fail if it has ended."""
    assert child.poll() is None, "it ended before it stood still"
    return bool(psutil.Process(child.pid).status() == psutil.STATUS_STOPPED)


def test_the_spool_is_not_filled(state, home, make_settings, redis_url):
    """A spool of a megabyte takes an import of more: it waits for the log (G10)."""
    state.db.close()
    (home.path / "state.db").unlink()
    hermes_state.big(home.path, 3_000)
    settings = make_settings(url=redis_url, spool_max_bytes=1 << 20)
    report = reconcile(home, settings, apply=True)
    assert (report.published, report.refused) == (1_500, [])
    assert len(turns(settings)) == 1_500


def test_memory_stays_flat(home, settings):
    """20,000 messages take no more memory than 2,000 (a child's peak, to 12 MB)."""
    peaks = {}
    for count in (2_000, 20_000):
        where = home.path / str(count)
        hermes_state.big(where, count)
        peaks[count] = peak_of(where, settings)
    assert peaks[20_000] - peaks[2_000] < 12 << 20, peaks


def peak_of(home: Path, settings: Settings) -> int:
    """Import a home in a child process and return its peak of resident memory."""
    program = (
        "import resource, sys; from memorybus_console.cli.app import main; code = main(); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=sys.stderr); "
        "sys.exit(code)"
    )
    words = ["hermes", "reconcile", "--apply", "--json", "--home", str(home)]
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env=to_environ(settings),
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["refused"] == []
    return int(done.stderr.split()[-1])


SECRET = "tok-live-9QxZ71bbK0"


def test_what_hermes_masked_is_not_missing(home, state, settings, run):
    """The log has masked copies of what Hermes stores raw: nothing is missing, an undo is found."""
    state.session("s1")
    first = state.say("s1", "user", f"keep my token {SECRET} for the pump")
    state.say("s1", "assistant", f"I keep {SECRET} for you")
    keep(home, "MEMORY.md", f"the pump's token is {SECRET}")
    with live(settings, "s1") as session:
        receipt = session.turn_completed(
            "keep my token [redacted] for the pump",
            "I keep [redacted] for you",
            at=hermes_ms(state),
        )
        session.memory_written("add", "the pump's token is [redacted]")
    report = run(apply=True)
    assert (report.missing, report.memories, report.published) == (0, 0, 0)
    state.undo("s1", first)
    run(apply=True)
    [switch] = [e.event for e in in_log(settings) if isinstance(e.event, SessionSwitched)]
    assert switch.retracted == (receipt.event_id,)
    assert SECRET not in repr(in_log(settings))


def test_what_the_log_lacks_is_published_masked(home, state, settings, run):
    """Turns, titles and entries that the bus never got come without secrets, once."""
    key = "AbCdEfGh0123456789"
    state.session("s1", title=f"about api_key={key}")
    state.turn("s1", f"use {key}", f"I set api_key={key}")
    keep(home, "MEMORY.md", f"api_key={key}")
    assert run(apply=True).published == 1
    assert key not in repr(in_log(settings))
    report = run(apply=True)
    assert (report.missing, report.memories, report.published) == (0, 0, 0)


def hermes_ms(state: HermesState) -> int:
    """Return the time of the last stored message."""
    return int(state.now * 1000)


def test_what_was_retracted_by_mistake_comes_again(state, settings, run):
    """A turn that stands in Hermes and is retracted in the log is published again, once (G1)."""
    state.session("s1")
    state.turn("s1", "tea", "Earl Grey")
    undone = state.say("s1", "user", "milk")
    state.say("s1", "assistant", "cold")
    run(apply=True)
    turns = [e for e in in_log(settings) if isinstance(e.event, TurnCompleted)]
    state.undo("s1", undone)
    with MemoryBus.connect(settings) as bus:
        bus.adopt(turns[0].scope, turns[0].session).undo(*(turn.id for turn in turns))
        assert bus.flush("logged", 20)
    dry = run()
    assert (dry.missing, dry.retracted, dry.undone) == (1, 1, 0)
    assert run(apply=True).published == 1
    again = [e for e in in_log(settings) if isinstance(e.event, TurnCompleted)][2:]
    assert [(e.event.user, e.at) for e in again] == [("tea", turns[0].at)]
    assert run(apply=True).sessions == []


def test_what_was_undone_after_a_rotation_does_not_come_again(state, settings, run):
    """An undo in the session that a compression made takes the turn of the first one back."""
    state.session("s1")
    for text in ("tea", "milk"):
        state.turn("s1", text, f"{text} it is")
    state.end("s1", "compression")
    run(apply=True)
    turn = [e for e in in_log(settings) if isinstance(e.event, TurnCompleted)][1]
    state.session("s2", parent="s1")
    state.say("s2", "assistant", SUMMARY)
    copy = state.say("s2", "user", "milk")
    state.say("s2", "assistant", "milk it is")
    state.undo("s2", copy)
    with MemoryBus.connect(settings) as bus:
        bus.adopt(turn.scope, turn.session).undo(turn.id)
        assert bus.flush("logged", 20)
    report = run(apply=True)
    assert (report.missing, report.retracted, report.published) == (0, 0, 0)
