"""The embedded server: one per data directory, durable, and no riddle when it fails."""

import json
import os
import signal
import socket
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest
import redis
from helpers.processes.processes import Child
from helpers.processes.waiting import wait_until
from helpers.redis.binaries import available
from memorybus.config.settings import Settings
from memorybus.embedded.binary import ServerBinary, find_server_binary
from memorybus.embedded.server import EmbeddedRedis
from memorybus.errors import ConfigError, NoServerBinary, ServerFailed
from memorybus.testing import FakeClock

START_AND_WAIT = """
import json, sys, threading
from pathlib import Path
from memorybus.embedded.server import EmbeddedRedis
from memorybus.config.settings import Settings

server = EmbeddedRedis(Settings(data_dir=Path(sys.argv[1])))
started = server.start()
print(json.dumps({"adopted": started.adopted, "pid": started.pid}))
while True:  # a signal that comes right before a wait does not end it
    threading.Event().wait(0.1)
"""

MakeServer = Callable[..., EmbeddedRedis]


@pytest.fixture
def make_server(short_dir: Path) -> Iterator[MakeServer]:
    """Make embedded servers on one data directory; those they started are stopped at the end."""
    servers: list[EmbeddedRedis] = []

    def make(data_dir: Path = short_dir, **options: object) -> EmbeddedRedis:
        server = EmbeddedRedis(Settings(data_dir=data_dir), **options)
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.stop(timeout=1.0)


@contextmanager
def connected(server: EmbeddedRedis) -> Iterator[redis.Redis]:
    client = redis.Redis(unix_socket_path=str(server.socket), decode_responses=True)
    try:
        yield client
    finally:
        client.close()


def kill_server(pid: int) -> None:
    """SIGKILL, and wait until it is gone (a zombie counts as gone)."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: gone(pid), f"server {pid} is gone")


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def append_only_file(server: EmbeddedRedis) -> Path:
    """Return the file that Redis appends to: its place differs between 6.2 and 7."""
    return next(server.directory.rglob("*.incr.aof"), server.directory / "appendonly.aof")


def last_started(child: Child) -> dict[str, object]:
    """Return what a child of `START_AND_WAIT` printed."""
    child.wait_output("}")
    return json.loads(child.output())


def test_starts_a_durable_server_that_evicts_nothing(make_server):
    """The server appends every write to a file, evicts nothing and opens no TCP port (G1)."""
    server = make_server()
    started = server.start()
    assert not started.adopted
    with connected(server) as client:
        config = client.config_get("*")
        info = client.info("server")
    release = info.get("valkey_version", info["redis_version"])
    assert (info["process_id"], release) == (started.pid, started.version)
    expected = {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
        "save": "",
        "port": "0",
        "stream-node-max-bytes": "65536",
        "hz": "4",
    }
    assert {name: config[name] for name in expected} == expected


def test_only_the_owner_can_reach_it(make_server):
    """Directory and socket are closed to other users of the machine."""
    server = make_server()
    server.start()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (server.directory, server.socket)]
    assert modes == [0o700, 0o600]


def test_adopts_a_server_that_runs_and_leaves_it_running(make_server):
    """Who adopts a server does not stop it; who started it does."""
    first, second = make_server(), make_server()
    started = first.start()
    adopted = second.start()
    assert (adopted.adopted, adopted.pid) == (True, started.pid)
    second.stop()
    assert first.wait_ready().pid == started.pid
    first.stop()
    assert gone(started.pid)
    assert not first.socket.exists()


def test_many_at_once_start_exactly_one(short_dir, spawn):
    """However many processes start a server at the same time, one starts it, all use it."""
    children = [spawn("-c", START_AND_WAIT, short_dir) for _ in range(4)]
    started = [last_started(child) for child in children]
    assert len({answer["pid"] for answer in started}) == 1
    assert sorted(answer["adopted"] for answer in started) == [False, True, True, True]
    servers = [p for p in spawn.descendants() if p.pid not in {c.pid for c in children}]
    assert [p.pid for p in servers] == [started[0]["pid"]]


def test_the_server_outlives_a_killed_starter(short_dir, spawn, make_server):
    """A server whose starter was killed goes on and is adopted by the next one (G1)."""
    child = spawn("-c", START_AND_WAIT, short_dir)
    pid = last_started(child)["pid"]
    child.kill()
    adopted = make_server().start()
    assert (adopted.adopted, adopted.pid) == (True, pid)


def test_ctrl_c_does_not_reach_the_server(short_dir, spawn, make_server):
    """A signal to the starter's process group leaves the server to its owner's `stop`."""
    child = spawn("-c", START_AND_WAIT, short_dir)
    pid = last_started(child)["pid"]
    os.killpg(child.pid, signal.SIGINT)
    child.wait()
    assert make_server().start().pid == pid


def test_a_killed_server_starts_again_with_its_data(make_server):
    """After kill -9 the stale socket is replaced and every write to its file is there (G1)."""
    server = make_server()
    first = server.start()
    with connected(server) as client:
        for n in range(500):
            client.rpush("list", n)
        # While a sync of its file takes long the server keeps back what it would write.
        wait_until(lambda: not client.info("persistence")["aof_buffer_length"], "it is written")
    kill_server(first.pid)
    assert server.socket.exists(), "a killed server leaves its socket file behind"
    second = server.start()
    assert (second.adopted, second.pid != first.pid) == (False, True)
    with connected(server) as client:
        assert client.llen("list") == 500


def test_stop_and_start_keep_the_data(make_server):
    """An orderly stop loses nothing, may be repeated, and the same object can start again."""
    server = make_server()
    with server, connected(server) as client:
        client.set("a", "1")
    server.stop()
    server.start()
    with connected(server) as client:
        assert client.get("a") == "1"


def test_a_lost_socket_never_leads_to_a_second_server(make_server):
    """While a server holds the data, no second one is started on it, socket or none."""
    server = make_server()
    started = server.start()
    server.socket.unlink()
    with pytest.raises(ServerFailed, match=r"server\.lock"):
        make_server().start(timeout=0.3)
    assert not gone(started.pid)


def test_a_hanging_server_is_named(make_server):
    """A server that holds its socket and does not answer is an error, not replaced."""
    server = make_server()
    started = server.start()
    os.kill(started.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ServerFailed, match="hangs"):
            make_server().start(timeout=0.3)
    finally:
        os.kill(started.pid, signal.SIGCONT)


def test_damaged_data_gives_the_remedy_and_the_remedy_works(make_server):
    """A damaged append-only file fails the start with the log's tail and a repair that repairs."""
    with make_server() as server, connected(server) as client:
        client.set("kept", "yes")
    damaged = append_only_file(server)
    damaged.write_bytes(damaged.read_bytes() + b"*garbage\r\n" * 20)
    with pytest.raises(ServerFailed) as failed:
        server.start()
    assert "redis-check-aof --fix" in str(failed.value)
    assert "append only file" in str(failed.value)
    binary = find_server_binary().path
    repair = f"exec -a redis-check-aof '{binary}' --fix '{damaged}'"
    subprocess.run(["bash", "-c", repair], input=b"y\n", capture_output=True, check=True)
    server.start()
    with connected(server) as client:
        assert client.get("kept") == "yes"


def test_a_torn_tail_is_repaired_by_itself(make_server):
    """A last write cut short by a crash costs that write alone."""
    with make_server() as server, connected(server) as client:
        client.set("kept", "yes")
        client.set("torn", "x" * 100)
    file = append_only_file(server)
    file.write_bytes(file.read_bytes()[:-30])
    server.start()
    with connected(server) as client:
        assert (client.get("kept"), client.get("torn")) == ("yes", None)


@pytest.mark.servers
@pytest.mark.parametrize("writer", ["redis-6.2", "redis-7.0"])
def test_the_files_of_an_older_redis_are_read(make_server, writer):
    """G1: a data directory of Redis 6.2 or 7.0 keeps its data under the bundled server."""
    older = available(writer)
    before = make_server(find=lambda: ServerBinary(older.path, older.version))
    with before, connected(before) as client:
        client.xadd("log", {"event": "kept"})
        client.bgrewriteaof()
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "rewritten")
        client.xadd("log", {"event": "kept too"})
    after = make_server(find=partial(find_server_binary, ""))
    with after, connected(after) as client:
        assert [fields["event"] for _, fields in client.xrange("log")] == ["kept", "kept too"]


@pytest.mark.servers
@pytest.mark.parametrize("other", ["redis-6.2", "redis-7.0", "redis-8.2"])
def test_a_server_that_does_not_read_the_files_is_passed_over(make_server, monkeypatch, other):
    """G1: a Redis on PATH would not read what Valkey wrote, so the bundled server goes on."""
    first = make_server(find=partial(find_server_binary, ""))
    with first, connected(first) as client:
        client.set("kept", "yes")
    monkeypatch.setenv("PATH", str(available(other).path.parent), prepend=os.pathsep)
    with make_server() as second, connected(second) as client:
        assert client.get("kept") == "yes"


def test_no_binary_is_said_at_once(make_server):
    """Where there is no server to start, the error comes through and nothing is left behind."""

    def nothing() -> ServerBinary:
        raise NoServerBinary("brew install redis")

    with pytest.raises(NoServerBinary, match="brew install redis"):
        make_server(find=nothing).start()


def test_a_path_too_long_for_a_socket_is_refused(make_server, short_dir):
    """Redis would cut a long path silently: it is refused before anything is made."""
    deep = short_dir / ("d" * 100)
    with pytest.raises(ConfigError, match=r"too long.*MEMORYBUS_DATA_DIR"):
        make_server(data_dir=deep).start()
    assert not deep.exists()


def test_a_directory_that_cannot_be_made_is_named(make_server, short_dir):
    """A data directory below a plain file is an error that names it."""
    (short_dir / "file").touch()
    with pytest.raises(ServerFailed, match="file"):
        make_server(data_dir=short_dir / "file").start()


def test_paths_with_spaces_and_letters_beyond_ascii(make_server, short_dir):
    """The default directory on macOS has a space in it; people's names have accents."""
    server = make_server(data_dir=short_dir / "Application Support é")
    server.start()
    with connected(server) as client:
        assert client.config_get("dir")["dir"] == str(server.directory.resolve())


def test_a_long_log_is_set_aside(make_server):
    """The server's log is bounded: past a megabyte it is set aside at the next start (G10)."""
    server = make_server()
    server.directory.mkdir(parents=True)
    server.log_path.write_bytes(b"x" * (1 << 20) + b"\n")
    server.start()
    assert server.log_path.stat().st_size < 1 << 16
    assert server.log_path.with_suffix(".log.old").stat().st_size == (1 << 20) + 1


def test_a_loading_server_is_waited_for(make_server):
    """While a server says that it is loading its data it does not count as silent."""
    server = make_server(clock=FakeClock())
    server.directory.mkdir(parents=True)
    answers = 30
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(server.socket))
        listener.listen()
        loading = threading.Thread(target=say_loading, args=(listener, answers))
        loading.start()
        with pytest.raises(ServerFailed):
            # Ten polls of the fake clock: it would have given up long before the thirtieth.
            server.wait_ready(timeout=0.1)
        loading.join(10)
        assert not loading.is_alive(), "given up while the server was loading"


def test_a_server_has_started_once_its_data_is_there(make_server):
    """INFO is answered while the data is still being loaded; the start ends when data is there."""
    with make_server() as server, connected(server) as client:
        client.set("kept", "yes")
    file = append_only_file(server)
    file.write_bytes(file.read_bytes() + b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n" * 500_000)
    server.start()
    with connected(server) as client:
        assert client.info("persistence")["loading"] == 0
        assert client.get("a") == "b"


def say_loading(listener: socket.socket, answers: int) -> None:
    """Answer so many connections as a server does that reads its data, then end."""
    for _ in range(answers):
        connection, _address = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"-LOADING Redis is loading the dataset in memory\r\n")
    listener.close()
