"""``memorybus dlq`` with a real worker: poison parks, an operator deals with it, all goes on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.faults.scale import QUICK
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.redis.clusters import RedisCluster, running
from helpers.stories.published import published
from helpers.stories.scenario import (
    NAME,
    PATIENT,
    home,
    key_of,
    neighbour_sessions,
    recorded,
    spread_sessions,
    thread_worker,
    wait_applied,
    worker,
)
from helpers.web.letters import letters
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings, to_environ
from memorybus.events import DeadLetterResolved
from memorybus.health.monitor import read_status
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus_console.cli.app import OK, main
from memorybus_console.cli.failures import FAILED, USAGE

pytestmark = pytest.mark.timeout(120)

KINDS = ["Transactional", "Keyed", "Lookup", "Blind", "KeyedSide", "LookupSide"]
every_kind = pytest.mark.parametrize("kind", KINDS)


class Answer(msgspec.Struct, frozen=True):
    """What a command ended with."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its result."""
        return json.loads(self.out)


Run = Callable[..., Answer]


@pytest.fixture(name="run")
def _run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Settings], Run]:
    """Run ``memorybus dlq`` under some settings."""

    def under(settings: Settings) -> Run:
        for name, value in to_environ(settings, {}).items():
            monkeypatch.setenv(name, value)

        def run(*words: str) -> Answer:
            capsys.readouterr()
            code = main(["dlq", *words])
            shown = capsys.readouterr()
            return Answer(code, shown.out, shown.err)

        return run

    return under


def say(settings: Settings, session: str, *words: str) -> None:
    """Publish turns of one session."""
    with MemoryBus.connect(settings) as bus:
        for text in words:
            bus.session(session, warm=False).turn_completed(text, "ok")
        assert bus.flush()


def poison(flag: Path, what: str = "permanent") -> str:
    """Return a text that is refused while the flag is there."""
    return f"!{what}={flag} bad"


@every_kind
def test_a_retry_drains_in_order_once(redis_client, make_settings, flag, run, kind):
    """G3, G4, G6: once the provider is well, one command applies what waits, in order, once."""
    settings = make_settings(partitions=2, **PATIENT, **recorded(kind))
    dlq = run(settings)
    bad, good = neighbour_sessions(settings, 2)
    with thread_worker(settings):
        say(settings, bad, "before", poison(flag), "after 1", "after 2")
        say(settings, good, "fine")
        wait_applied(redis_client, settings)
        assert sorted(texts(home(settings))) == ["before", "fine"]
        flag.unlink()
        plan = dlq("discard", "--all", "--reason", "x", "--json")
        assert (plan.code, plan.json["executed"], plan.json["events"]) == (OK, False, 3)
        assert len(letters(settings, NAME)) == 3, "a plan does nothing"
        done = dlq("retry", "--all", "--json")
        assert done.code == OK, done.err
        assert (done.json["finished"], done.json["settled"], done.json["remaining"]) == (True, 3, 0)
        say(settings, bad, "at last")
        wait_applied(redis_client, settings)
    mine = [text for text in texts(home(settings)) if text != "fine"]
    assert mine == ["before", poison(flag), "after 1", "after 2", "at last"]
    status = read_status(settings).providers[0]
    assert (status.parked_keys, status.dead_letters, status.backlog) == (0, 0, 0)


@every_kind
def test_what_is_refused_again_is_said(redis_client, make_settings, flag, run, kind):
    """G6: a retry of what is still poison ends with exit code 1, and counts the try."""
    settings = make_settings(partitions=1, **PATIENT, **recorded(kind))
    dlq = run(settings)
    with thread_worker(settings):
        say(settings, "s", poison(flag), "after")
        wait_applied(redis_client, settings)
        (row,) = dlq("ls", "--json").json
        again = dlq("retry", row["event"][:24])
        assert again.code == FAILED
        assert f"refused: {row['event']}" in again.err
        assert "0 events applied; 2 events of the same keys still wait" in again.out
        (now,) = dlq("ls", "--json").json
        assert now["tries"] > row["tries"]
        assert now["first_at"] == row["first_at"]
        assert now["last_at"] > row["last_at"]
        assert now["events"] == 2
    assert texts(home(settings)) == []


@every_kind
def test_a_discard_frees_what_waits(redis_client, make_settings, flag, run, kind):
    """G6: a discarded event is skipped for good, and history says who did it and why."""
    settings = make_settings(partitions=1, **PATIENT, **recorded(kind))
    dlq = run(settings)
    with thread_worker(settings):
        say(settings, "s", poison(flag), "after 1", "after 2")
        wait_applied(redis_client, settings)
        event = dlq("ls", "--json").json[0]["event"]
        would = dlq("discard", event, "--reason", "test data", "--json").json
        assert [(key["events"], key["then"], key["wait"]) for key in would["keys"]] == [(1, 2, 0)]
        assert dlq("discard", event, "--reason", "test data", "--yes").code == OK
        wait_applied(redis_client, settings)
        assert texts(home(settings)) == ["after 1", "after 2"]
        events = EventLog(redis_client, settings).read(0)
        status = read_status(settings).providers[0]
        assert (status.applied, status.backlog) == (len(events) - 1, 0), "all but the discarded"
        (decision,) = published(settings, DeadLetterResolved)
    assert (decision.event_id, decision.action, decision.reason) == (event, "discard", "test data")
    assert "@" in decision.operator
    assert letters(settings, NAME) == []


@every_kind
def test_an_edited_event_is_applied_in_place(
    redis_client, make_settings, flag, tmp_path, run, kind
):
    """G6: an edit made from what `show` prints is applied in the event's place, and recorded."""
    settings = make_settings(partitions=1, **PATIENT, **recorded(kind))
    dlq = run(settings)
    with thread_worker(settings):
        say(settings, "s", poison(flag), "after")
        wait_applied(redis_client, settings)
        event = letters(settings, NAME)[0]
        fields = dlq("show", event, "--json").json["published"]["event"]
        file = tmp_path / "new.json"
        file.write_text(json.dumps(fields | {"user": "harmless"}))
        words = ("edit", event, "--file", str(file), "--reason", "poison")
        assert dlq(*words).code == OK
        assert texts(home(settings)) == []
        done = dlq(*words, "--yes")
        assert done.code == OK, done.err
        wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["harmless", "after"]
    (decision,) = published(settings, DeadLetterResolved)
    assert (decision.action, decision.replacement["user"]) == ("edit", "harmless")


def test_lanes_of_all_shards(redis_server, make_settings, flag, run):
    """G6: on a cluster, dead letters of lanes on every shard are listed, discarded and retried."""
    cluster = RedisCluster()
    settings = make_settings(
        url=cluster.url, jobs_url=redis_server.url, **PATIENT, **recorded("Keyed")
    )
    dlq = run(settings)
    with running(cluster):
        client = connect_redis(settings)
        with thread_worker(settings):
            for session in spread_sessions(settings, 6):
                say(settings, session, poison(flag), "after")
            wait_applied(client, settings)
            rows = dlq("ls", "--json").json
            assert len(rows) == 6
            assert dlq("discard", rows[0]["event"], "--reason", "x", "--yes").code == OK
            flag.unlink()
            assert dlq("retry", "--all").code == OK
        assert letters(settings, NAME) == []
        assert sorted(texts(home(settings))) == sorted([poison(flag)] * 5 + ["after"] * 6)
        client.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [("[1]", "not a JSON object"), ('{"usr": "x"}', "no field 'usr'"), ('{"user": 1}', "not a")],
)
def test_a_bad_edit_asks_nobody(redis_client, make_settings, flag, tmp_path, run, text, said):
    """G6: an edit that is no event of its type is refused before anything is asked."""
    settings = make_settings(partitions=1, **PATIENT, **recorded("Keyed"))
    with thread_worker(settings):
        say(settings, "s", poison(flag))
        wait_applied(redis_client, settings)
    file = tmp_path / "new.json"
    file.write_text(text)
    event = letters(settings, NAME)[0]
    done = run(settings)("edit", event, "--file", str(file), "--reason", "x", "--yes")
    assert done.code == FAILED
    assert said in done.err


def test_errors_are_grouped(redis_client, make_settings, flag, run):
    """G6: what fails alike is one group, which can be retried alone."""
    settings = make_settings(partitions=4, **PATIENT, **recorded("Keyed"))
    dlq = run(settings)
    with thread_worker(settings):
        for session in ("a", "b", "c"):
            say(settings, session, poison(flag), "after")
        say(settings, "d", poison(flag, "value"))
        wait_applied(redis_client, settings)
        groups = {row["keys"]: row for row in dlq("ls", "--group", "error", "--json").json}
        assert set(groups) == {3, 1}
        assert (groups[3]["events"], groups[3]["refused"]) == (6, 3)
        assert "Permanent" in groups[3]["reason"]
        (total,) = dlq("ls", "--group", "provider", "--json").json
        assert total == {"provider": NAME, "keys": 4, "events": 7, "errors": 2}
        flag.unlink()
        assert dlq("retry", "--error", groups[3]["error"]).code == OK
        (left,) = dlq("ls", "--json").json
        assert left["key"] == key_of(settings, "d")
        assert dlq("retry", "--key", left["key"]).code == OK
    assert letters(settings, NAME) == []


def test_without_an_owner_requests_are_kept(redis_client, make_settings, flag, run):
    """G6: without a worker the command says so in bounded time, and the next one does it."""
    settings = make_settings(partitions=1, lease=3.0, call_timeout=2.0, **recorded("Keyed"))
    dlq = run(settings)
    with thread_worker(settings):
        say(settings, "s", poison(flag), "after")
        wait_applied(redis_client, settings)
    flag.unlink()
    asked = dlq("retry", "--all", "--json")
    assert (asked.code, asked.json["finished"]) == (FAILED, False)
    assert "no worker owns these lanes" in asked.err
    assert "memorybus up" in asked.err
    with thread_worker(settings):
        wait_until(lambda: texts(home(settings)) == [poison(flag), "after"], "it was done", 15)
        wait_until(lambda: letters(settings, NAME) == [], "nothing is left")


def test_people_see_what_waits(redis_client, make_settings, flag, run):
    """G6: the list, one letter and a dry run are fit for people, hostile texts too."""
    settings = make_settings(partitions=1, **PATIENT, **recorded("Keyed"))
    dlq = run(settings)
    assert "no dead letters" in dlq("ls").out
    with thread_worker(settings):
        say(settings, "s\x1b[31m", poison(flag) + " \x1b[2J", "after")
        wait_applied(redis_client, settings)
    event = letters(settings, NAME)[0]
    waiting = letters(settings, NAME)[1]
    shown = [
        *(dlq("ls"), dlq("ls", "--group", "error"), dlq("show", event)),
        *(
            dlq("discard", "--key", key_of(settings, "s\x1b[31m"), "--reason", "x"),
            dlq("show", waiting),
        ),
        *(dlq("discard", "--all", "--reason", "x"), dlq("discard", event, "--reason", "x")),
    ]
    assert all(one.code == OK for one in shown)
    assert not any("\x1b" in one.out + one.err for one in shown)
    assert event in shown[0].out
    assert "told to raise Permanent" in shown[2].out
    assert "Traceback (most recent call last)" in shown[2].out
    assert "would discard 2 events of 1 key" in shown[3].out
    assert "--yes" in shown[3].err
    assert f"never tried: it waits behind {event}" in shown[4].out
    assert "2 events of its key, itself included" in shown[4].out
    assert "1 of them was never tried" in shown[5].err
    assert "never tried" not in shown[6].err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("retry",), USAGE),
        (("retry", "--all", "--key", "k"), USAGE),
        (("retry", "ffff"), FAILED),
        (("retry", "--error", "ffffffff"), FAILED),
        (("retry", "--key", "session:nobody"), FAILED),
        (("ls", "--provider", "nobody"), USAGE),
        (("show", "ffff"), FAILED),
        (("retry", "--all"), OK),
    ],
)
def test_nothing_is_meant(redis_client, make_settings, run, words, code):
    """G6: an unclear or empty selection does nothing, and says why."""
    answer = run(make_settings(partitions=1, **recorded("Keyed")))(*words)
    assert answer.code == code
    assert answer.err if code else "no dead letters" in answer.out


DYING = ("Transactional", "KeyedSide", "Blind") if QUICK else KINDS


@pytest.mark.fault
@pytest.mark.parametrize(
    ("kind", "point", "twice"),
    [
        *((kind, "redo.after_apply", int(kind == "Blind")) for kind in DYING),
        ("Blind", "redo.before_apply", 0),
        ("Blind", "redo.after_settle", 0),
    ],
)
def test_a_worker_dies_while_it_drains(
    redis_client, make_settings, flag, run, spawn, kind, point, twice
):
    """G3, G4: a worker killed in a drain leaves it to the next one: in order, once by class.

    Where it died with a letter, that one waits to be asked for again.
    """
    settings = make_settings(partitions=1, lease=4.0, call_timeout=3.0, **recorded(kind))
    keys = Keys(settings.namespace)
    dlq = run(settings)
    with thread_worker(settings):
        say(settings, "s", poison(flag), "one", "two", "three")
        wait_applied(redis_client, settings)
    flag.unlink()
    dying = worker(spawn, msgspec.structs.replace(settings, crash_at=f"{point}:2"))
    asked = dlq("retry", "--all", "--wait", "0.5")
    wait_until(lambda: not dying.alive, "the worker has died there", 20)
    with thread_worker(settings):
        if point == "redo.after_apply":  # for all that the next owner knows, it is the letter
            wait_until(lambda: not redis_client.hlen(keys.redo(NAME)), "one is refused", 20)
            assert len(letters(settings, NAME)) == 3
            assert dlq("retry", "--all").code == OK
        wait_until(lambda: letters(settings, NAME) == [], "the drain is done", 20)
    wanted = [poison(flag), "one", "two", "three"]
    found = texts(home(settings))
    assert asked.code == FAILED
    assert list(dict.fromkeys(found)) == wanted
    assert len(found) - len(wanted) == twice
