"""The helpers that other tests rely on can fail, and say why."""

import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import redis
from helpers.faults.crew import PATH
from helpers.processes.preloaded import Preloaded
from helpers.processes.scratch import keep_files_in_memory
from helpers.processes.waiting import wait_until
from helpers.redis.leaks import leaked_keys
from helpers.services import postgres_server
from helpers.services.fake_http import FakeHandler, FakeServer, serving
from helpers.services.postgres_server import NoPostgres, _unpack, _whole
from memorybus.config.settings import to_environ
from memorybus.redis.keys import Keys


def test_waiting_names_the_condition():
    """A condition that never comes true fails by its name."""
    with pytest.raises(AssertionError, match=r"the moon is blue.*last value: 0"):
        wait_until(lambda: 0, "the moon is blue", timeout=0)


def test_a_key_without_an_end_is_a_leak(fake_redis):
    """Only keys that the table lets stay, or that expire, or that are RQ's, are left alone."""
    keys = Keys("mine")
    fake_redis.hset(keys.meta, "partitions", 4)
    fake_redis.xadd(keys.log(3), {"e": b""})
    fake_redis.set(keys.lease(3, "builtin"), "1:w", px=60_000)
    fake_redis.sadd("rq:queues", "recall")
    assert leaked_keys(fake_redis) == []
    fake_redis.set(keys.lease(3, "holographic"), "1:w")
    fake_redis.set("mine:forgotten", 1)
    assert leaked_keys(fake_redis) == sorted(["mine:forgotten", keys.lease(3, "holographic")])


def test_a_killed_server_keeps_its_data(private_redis):
    """A private server can be killed and started again on what it had acknowledged."""
    keys, client = Keys("mine"), private_redis.client()
    client.hset(keys.meta, "partitions", 4)
    private_redis.kill()
    with pytest.raises(redis.exceptions.ConnectionError):
        client.ping()
    private_redis.start()
    assert client.hget(keys.meta, "partitions") == b"4"


def test_a_frozen_server_is_silent_until_thawed(private_redis):
    """Freezing is not an end: connections stay open, and nothing answers."""
    client = private_redis.client()
    connection = client.connection_pool.get_connection()
    private_redis.freeze()
    connection.send_command("PING")
    assert not connection.can_read(timeout=0.1)
    private_redis.thaw()
    assert connection.read_response() == b"PONG"
    client.connection_pool.release(connection)


def test_orphans_are_found_and_killed(spawn):
    """What a killed child had started belongs to the test still."""
    sleeper = "import signal; signal.pause()"
    program = (
        "import subprocess, sys; "
        f"print(subprocess.Popen([sys.executable, '-c', {sleeper!r}], "
        "start_new_session=True).pid); " + sleeper
    )
    child = spawn("-c", program)
    child.wait_output("\n")
    orphan = int(child.output())
    child.kill()
    assert (child.alive, child.exit_code) == (False, -9)
    assert [process.pid for process in spawn.descendants()] == [orphan]
    spawn.end_all()
    assert spawn.descendants() == []


def test_a_signal_for_a_forked_program_that_has_just_ended_is_no_error():
    """Whoever forked a program knows its end first, so a signal may come too late."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b'{"pid": %d}\n' % ended.pid)
        Preloaded(ours).send_signal(signal.SIGTERM)


@pytest.mark.slow(reason="starts processes")
def test_a_writer_ends_with_the_run_that_started_it(spawn, make_settings, tmp_path):
    """A test run that is killed leaves no load behind, which would slow down the next one."""
    journal = tmp_path / "journal"
    start = [sys.executable, "-m", "helpers.faults.load", "--journal", str(journal), "--flush", "0"]
    around = to_environ(make_settings(url="redis://127.0.0.1:1/0"), {}) | {"PYTHONPATH": PATH}
    parent = spawn("-c", f"import subprocess; subprocess.run({start!r})", env=around)
    wait_until(lambda: journal.exists() and journal.stat().st_size, "the writer publishes")
    parent.kill()
    wait_until(lambda: not spawn.descendants(), "the writer has ended")


def test_a_fake_service_ends_with_a_test_that_fails():
    """A server whose test failed leaves no thread behind, which would slow down the next ones."""
    before = set(threading.enumerate())
    with pytest.raises(ConnectionError), serving(FakeServer(FakeHandler)):
        raise ConnectionError("the test fails")
    assert set(threading.enumerate()) <= before


SWALLOWS = '''
import asyncio
import pytest

@pytest.mark.timeout(1)
def test_it_hangs():
    """It ends by the time-out alone."""
    async def run():
        asyncio.get_running_loop().call_soon(lambda: [None for _ in iter(int, 1)])
        await asyncio.sleep(3_600)
    asyncio.run(run())
'''


@pytest.mark.slow(reason="starts a run of pytest")
def test_a_time_out_that_was_swallowed_comes_again(spawn, tmp_path):
    """An event loop logs what a callback raises, and goes on: the test ends all the same."""
    file = tmp_path / "test_hangs.py"
    file.write_text(SWALLOWS)
    child = spawn("-m", "pytest", "-p", "conftest", file, env={"PYTHONPATH": PATH}, cwd=tmp_path)
    assert child.wait(60) == 1
    assert "Failed: Timeout" in child.output()


def test_files_in_memory_go_with_the_run(tmp_path):
    """A run's temporary files are where it was told, and are gone with it."""
    before = tempfile.gettempdir()
    delete = keep_files_in_memory(tmp_path, room=0)
    assert delete is not None
    assert tmp_path in Path(tempfile.mkdtemp()).parents
    delete()
    assert tempfile.gettempdir() == before
    assert list(tmp_path.iterdir()) == []


def test_files_stay_on_disk_without_room(tmp_path):
    """A run that could fill the memory, or that has none to use, keeps its files on disk."""
    before = tempfile.gettempdir()
    assert keep_files_in_memory(tmp_path, room=1 << 60) is None
    assert keep_files_in_memory(tmp_path / "missing", room=0) is None
    assert tempfile.gettempdir() == before


def unpack_into(home: Path, *names: str) -> None:
    """Write empty files of an installation."""
    for name in names:
        file = home / ".pg0" / "installation" / "18.1.0" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


@pytest.fixture(name="pg0")
def _pg0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for pg0, whose first start unpacks the files that this list names."""
    files = ["bin/initdb", "share/extension/vector.control"]
    module = ModuleType("pg0")
    module.__file__ = str(tmp_path / "pg0.py")

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        unpack_into(Path(options["env"]["HOME"]), *files)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setitem(sys.modules, "pg0", module)
    monkeypatch.setattr(postgres_server, "runner", str)
    monkeypatch.setattr(subprocess, "run", run)
    return files


def test_what_was_cut_off_is_unpacked_again(tmp_path, pg0):
    """An unpacking without pgvector counts for nothing, whatever mark it has: it is replaced."""
    home = tmp_path / "postgres"
    unpack_into(home, "bin/initdb")
    (home / "done").write_text(str(home))
    assert _whole(home) is None
    programs = _unpack(home)
    assert programs == _whole(home)
    assert programs is not None
    assert (programs / "initdb").exists()
    assert not (home / "done").exists()


def test_an_unpacking_that_is_cut_off_leaves_nothing_at_its_place(tmp_path, pg0):
    """A first start that ends early is an error, and the next run begins anew."""
    pg0.remove("share/extension/vector.control")
    home = tmp_path / "postgres"
    with pytest.raises(NoPostgres, match="pgvector"):
        _unpack(home)
    assert not home.exists()
    pg0.append("share/extension/vector.control")
    assert _unpack(home) == _whole(home)
