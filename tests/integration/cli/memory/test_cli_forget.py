"""``memorybus forget``: somebody is erased wherever it can be reached, and nobody else is."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from helpers.processes.commands import run_command
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import environ, home, recorded, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.archive.location import archive_of
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status
from memorybus.history.history import History
from memorybus.processes import commands
from memorybus.query.query import Query
from memorybus.redis.keys import Keys
from memorybus_console.cli.app import main

pytestmark = pytest.mark.timeout(120)

SECRET = "wolpertinger"
QUICK: dict[str, Any] = {"seal_after": 0.05, "partitions": 2, "recall_timeout": 20.0}

Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs ``memorybus forget … --json`` with settings; it gives code and result."""

    def running(settings: Settings, *words: str) -> tuple[int, dict[str, Any]]:
        where = ("--url", settings.url, "--namespace", settings.namespace)
        home = ("--data-dir", str(settings.data_dir), "--json")
        code = main(["forget", *words, *where, *home])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else {}

    return running


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Settings], None]:
    """Return what lets the command find the settings that no option gives."""

    def configure(settings: Settings) -> None:
        names = {"SEAL_AFTER": str(settings.seal_after), "PARTITIONS": str(settings.partitions)}
        for name, value in (names | {"RECALL_TIMEOUT": "20"}).items():
            monkeypatch.setenv(f"MEMORYBUS_{name}", value)

    return configure


def spoken(settings: Settings, user: str, *said: str) -> None:
    """Publish turns of a person."""
    with MemoryBus.connect(settings) as bus:
        session = bus.session(f"s-{user}", user=user, warm=False)
        for number, text in enumerate(said):
            session.turn_completed(text, "Noted.", ordinal=number)
            session.memory_written("add", text, store="user")
        assert bus.flush("logged", 10)


def recalled(settings: Settings, user: str) -> set[str]:
    """Ask as a person's session; return the key of what is warm then."""
    with MemoryBus.connect(settings) as bus:
        session = bus.session(f"s-{user}", user=user, warm=False)
        assert SECRET in session.prefetch(f"Where is the {SECRET}?", wait=20)
    return {Keys(settings.namespace).warm(session.slot)}


def applied(client: redis.Redis, settings: Settings) -> None:
    """Wait until all providers have all events."""
    for name in settings.providers:
        wait_applied(client, settings, name)


def people(client: redis.Redis, settings: Settings) -> list[str]:
    """Return whose events the history shows."""
    return [event.envelope.scope.user for event in History.from_settings(client, settings).scan()]


def in_redis(client: redis.Redis, settings: Settings) -> list[str]:
    """Return the keys in which a text lies."""
    client.config_set("rdbcompression", "no")  # a dump would hide a text that it compresses
    keys: list[Any] = list(client.scan_iter(f"{settings.namespace}:*"))
    return [key.decode() for key in keys if SECRET.encode() in (client.dump(key) or b"")]


def test_a_person_is_erased_everywhere_and_nobody_else(
    redis_url, redis_client, make_settings, spawn, run, configured
):
    """History, log, providers and their files have nothing of the person; the other's stays."""
    settings = make_settings(url=redis_url, providers=("builtin", "holographic"), **QUICK)
    configured(settings)
    child = worker(spawn, settings, jobs=1)
    spoken(settings, "ann", f"I saw a {SECRET}.", "And a quince.")
    spoken(settings, "bob", "I saw a pear.")
    applied(redis_client, settings)
    warm = recalled(settings, "ann")
    assert warm & set(in_redis(redis_client, settings))
    code, plan = run(settings, "--user", "ann")
    assert (code, plan["executed"], plan["events"], plan["sessions"]) == (0, False, 5, 1)

    code, done = run(settings, "--user", "ann", "--yes", "--reason", "she asked")

    assert (code, done["problems"], done["log"]["unsealed"]) == (0, [], 0)
    assert {one["name"]: one["problem"] for one in done["instances"]} == {
        "builtin": "",
        "holographic": "",
    }
    assert sum(one["erased"] for one in done["instances"]) >= 6
    assert set(people(redis_client, settings)) == {"bob", "operators"}
    assert not in_redis(redis_client, settings)
    files = [path for path in (settings.data_dir / "providers").rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert any(b"pear" in path.read_bytes() for path in files)
    spoken(settings, "ann", "I am back.")
    applied(redis_client, settings)
    assert run_command(environ(settings), "verify", "holographic").returncode == 0
    assert people(redis_client, settings).count("ann") == 2
    assert [one for one in read_status(settings).alarms if "gone" in str(one)] == []
    assert "DATA LOSS" not in child.output()


def test_what_others_were_shown_goes_and_files_are_rewritten(
    make_redis, make_settings, spawn, run, configured
):
    """What a person's session wrote to the agent's store is erased for all; what remains is named.

    It is nowhere in Redis, in its files, or in this host's notes and spools.
    """
    server = make_redis(appendonly="yes")
    both, written = ("builtin", "holographic"), f"A {SECRET} lives in the garden.".encode()
    settings = make_settings(url=server.url, providers=both, spool_keep=5.0, **QUICK)
    configured(settings)
    worker(spawn, settings, jobs=1)
    client, keys = server.client(), Keys(settings.namespace)
    with MemoryBus.connect(settings) as bus:
        hers = bus.session("s-ann", user="ann", warm=False)
        hers.memory_written("add", written.decode())
        assert bus.flush("logged", 10)
        applied(client, settings)
        his = bus.session("s-bob", user="bob", warm=False)
        assert SECRET in his.prefetch(f"Where does the {SECRET} live?", wait=20)
        bus.sessions.keep_prompt(his.scope, "s-bob", f"There is a {SECRET}.", 1)
        client.hset(keys.reply(0, "ab" * 16), "builtin", f"a {SECRET}")
        client.expire(keys.reply(0, "ab" * 16), 60)
    assert {keys.warm(his.slot), keys.reply(0, "ab" * 16)} <= set(in_redis(client, settings))

    assert written in file_bytes(server.directory, "*.aof")
    assert written in file_bytes(settings.spool_dir, "*.db*")

    code, done = run(settings, "--user", "ann", "--yes", "--reason", "she asked")

    assert (code, done["problems"]) == (0, [])
    assert not list(settings.spool_dir.glob("*.db"))
    assert written not in file_bytes(server.directory, "*.aof")
    assert SECRET.encode() not in file_bytes(settings.data_dir, "sessions.db*")
    left = set(in_redis(client, settings)) - {keys.want(his.slot)}  # his own question
    assert not left
    with MemoryBus.connect(settings) as bus:
        scope = bus.session("s-bob", user="bob", warm=False).scope
        assert bus.sessions.prompt(scope, "s-bob", 2) is None


def file_bytes(directory: Path, names: str) -> bytes:
    """Return all that is in some files of a directory."""
    return b"".join(path.read_bytes() for path in directory.rglob(names))


def test_a_spool_that_is_in_use_is_named(redis_url, make_settings, spawn, run, configured):
    """The spool of a process that runs is not touched, and is named with what to do."""
    settings = make_settings(url=redis_url, providers=("builtin", "holographic"), **QUICK)
    configured(settings)
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        bus.session("s-ann", user="ann", warm=False).turn_completed("I am here.", "Good.")
        assert bus.flush("logged", 10)
        code, done = run(settings, "--user", "ann", "--yes", "--reason", "she asked")
        [spool] = settings.spool_dir.glob("*.db")
    assert code == 0
    assert [what for what in done["remains"] if str(spool) in what and "run this again" in what]


def test_what_is_not_erased_yet_is_told_and_the_second_run_ends_it(
    redis_url, redis_client, make_settings, spawn, run, configured
):
    """Without a worker history is hidden and the providers are named; with one the rest is done."""
    settings = make_settings(url=redis_url, providers=("builtin", "holographic"), **QUICK)
    configured(settings)
    child = worker(spawn, settings, jobs=1)
    spoken(settings, "ann", f"I saw a {SECRET}.")
    applied(redis_client, settings)
    child.terminate()
    child.wait()

    code, done = run(settings, "--user", "ann", "--yes", "--wait", "1")
    assert code == 1
    assert all("no live worker" in one["problem"] for one in done["instances"])
    assert people(redis_client, settings) == ["operators"]

    worker(spawn, settings, jobs=1)
    code, done = run(settings, "--user", "ann", "--yes")
    assert (code, done["tombstone"], done["events"]) == (0, "", 0)
    assert all(one["erased"] for one in done["instances"])


def test_a_provider_that_cannot_erase_is_named(
    redis_url, redis_client, make_settings, spawn, run, configured
):
    """A provider without `forgets` keeps what it has, and the exit code says that this is so."""
    settings = make_settings(url=redis_url, **recorded("Keyed"), **QUICK)
    configured(settings)
    worker(spawn, settings, jobs=1)
    spoken(settings, "ann", f"I saw a {SECRET}.")
    applied(redis_client, settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMORYBUS_PROVIDERS", "rec")
        code, done = run(settings, "--user", "ann", "--yes", "--wait", "1")
    assert code == 1
    assert ["no way to erase" in one["problem"] for one in done["instances"]] == [True]
    assert texts(home(settings))


def test_dead_letters_go(redis_url, redis_client, make_settings, spawn, run, configured):
    """What a provider refused of the person is discarded, and their key is free again."""
    settings = make_settings(url=redis_url, **recorded("Keyed"), **QUICK)
    configured(settings)
    worker(spawn, settings, jobs=1)
    spoken(settings, "ann", f"!permanent {SECRET}")
    spoken(settings, "bob", "!permanent pear")
    applied(redis_client, settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMORYBUS_PROVIDERS", "rec")
        _, done = run(settings, "--user", "ann", "--yes", "--wait", "10")
    assert done["letters"] >= 1
    keys = Keys(settings.namespace)
    left = sum(redis_client.xlen(keys.dead(p, "rec")) for p in range(settings.partitions))
    wait_until(lambda: left >= 1, "bob's stay")
    assert not in_redis(redis_client, settings)


def test_an_archiver_that_is_killed_is_a_problem(
    redis_url, redis_client, make_settings, run, configured
):
    """The rest is erased, the log keeps the entries, and the next run has to end it."""
    settings = make_settings(url=redis_url, providers=(), **QUICK)
    configured(settings)
    spoken(settings, "ann", SECRET)
    killed = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMORYBUS_PROVIDERS", "")
        patch.setattr(commands, "module_command", lambda *_: killed)
        code, done = run(settings, "--user", "ann", "--yes", "--wait", "1")
    (problem,) = done["problems"]
    assert code == 1
    assert "may still have the bytes" in problem
    assert "exit code -9" in problem
    assert in_redis(redis_client, settings)


def test_nobody_is_everybody(make_settings, redis_url, run):
    """Without a name nothing is erased: a mistake must not erase everybody."""
    code, _ = run(make_settings(url=redis_url), "--yes")
    assert code == 2


def test_the_tombstone_has_an_end(redis_url, redis_client, make_settings, run, configured):
    """What happened before is hidden, though it comes later; what happens afterwards is not."""
    settings = make_settings(url=redis_url, providers=(), **QUICK)
    configured(settings)
    spoken(settings, "ann", "before")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMORYBUS_PROVIDERS", "")
        run(settings, "--user", "ann", "--yes", "--wait", "1")
    archive = archive_of(redis_client, settings)
    assert archive is not None
    (tombstone,) = archive.tombstones()
    assert tombstone.query == Query(users=("ann",), upto=tombstone.query.upto)
    assert tombstone.query.upto >= tombstone.at > 0
