"""A Redis that wants a password: who has another one is told so, at once, and never shown it."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.redis.clusters import free_ports
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import home, recorded, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings, to_environ
from memorybus.errors import AccessDenied
from memorybus.health.monitor import read_status
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from memorybus_console.cli import main

RIGHT, WRONG = "sesame", "s3cret-but-wrong"

CLI = ("-m", "memorybus_console.cli")

Url = Callable[[str], str]


@pytest.fixture(scope="module", name="admin")
def _admin() -> Iterator[redis.Redis]:
    """Return who may change the password of a server that wants one."""
    server = RedisServer(port=free_ports(1)[0], bind="127.0.0.1", appendonly="yes")
    server.start()
    client = server.client(single_connection_client=True)
    client.config_set("requirepass", RIGHT)
    yield client
    server.remove()


@pytest.fixture(name="url")
def _url(admin: redis.Redis) -> Url:
    """Return what makes a URL of that server with a password; without one if it is empty."""
    port = admin.config_get("port")["port"]
    return lambda password: f"redis://{f':{password}@' if password else ''}127.0.0.1:{port}"


@pytest.mark.parametrize("password", [WRONG, ""], ids=["wrong", "none"])
@pytest.mark.parametrize(
    "words",
    [
        *(("status",), ("events", "ls"), ("dlq", "ls"), ("provider", "ls"), ("replay", "ls")),
        *(("recall", "anything"), ("archive", "ls"), ("rebuild", "builtin")),
    ],
    ids=" ".join,
)
def test_a_command_ends_with_the_cause(url, short_dir, words, password, capsys):
    """A refused password is wrong usage: what to correct is told, not what starts Redis."""
    place = ("--url", url(password), "--data-dir", str(short_dir))
    assert main([*words, *place, "--json"]) == 2
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    assert told["error"] == "AccessDenied"
    assert "MEMORYBUS_URL" in told["message"]
    assert "memorybus up" not in shown.out + shown.err
    assert WRONG not in shown.out + shown.err


@pytest.mark.parametrize("words", [("worker",), ("worker", "--processes", "2"), ("up",)])
def test_who_serves_does_not_wait_for_another_password(url, make_settings, spawn, words):
    """A worker that cannot log in when it begins ends with exit code 2, however it was started."""
    settings = make_settings(url=url(WRONG))
    child = spawn(*CLI, *words, "--json", env=to_environ(settings))
    assert child.wait(30) == 2
    said = child.output()
    assert "error: " in said
    assert '"AccessDenied"' in said
    assert WRONG not in said


def test_an_ingest_publishes_nothing(url, tmp_path, short_dir, capsys):
    """What could not be sent is not accepted: no spool is begun for a password that is wrong."""
    file = tmp_path / "talk.jsonl"
    file.write_text('{"role": "user", "content": "hi"}\n{"role": "assistant", "content": "yo"}\n')
    assert main(["ingest", str(file), "--url", url(WRONG), "--data-dir", str(short_dir)]) == 2
    assert "wants another user or password" in capsys.readouterr().err
    assert list(short_dir.rglob("*.db")) == []


def test_the_doctor_does_not_start_what_runs(url, short_dir, capsys):
    """Its remedy is another password, not another server."""
    assert main(["doctor", "--url", url(WRONG), "--data-dir", str(short_dir), "--json"]) == 1
    checks = {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}
    assert "wants another user or password" in checks["redis"]["found"]
    assert (
        checks["redis"]["fix"]
        == checks["canary"]["fix"]
        == "repair what the error names, then run memorybus doctor again"
    )


@pytest.mark.parametrize("scheme", ["redis+sentinel", "redis+cluster"])
def test_sentinels_and_nodes_refuse_likewise(make_settings, scheme):
    """Behind sentinels and in a cluster the cause is found, too."""
    with answering(b"-NOAUTH Authentication required.") as there:
        name, more = ("", {"jobs_url": "redis://x"}) if "cluster" in scheme else ("mymaster", {})
        url = f"{scheme}://:{WRONG}@127.0.0.1:{there}/{name}"
        settings = make_settings(url=url, **more)
        client = connect_redis(settings)
        with pytest.raises(AccessDenied, match="wants another user or password") as refused:
            EventLog(client, settings).open()
    assert WRONG not in str(refused.value)
    client.close()


def test_what_a_user_may_not_do_is_named(admin, url, make_settings):
    """A user without the rights is told which command, and is not waited for either."""
    admin.execute_command("ACL", "SETUSER", "guest", "on", ">guest", "~*", "+info", "+ping")
    settings = make_settings(url=url("").replace("//", "//guest:guest@"))
    client = connect_redis(settings)
    with pytest.raises(AccessDenied, match="no permissions"):
        EventLog(client, settings).open()
    client.close()


def test_who_runs_already_goes_on_trying(admin, url, make_settings, spawn):
    """G9: a worker below which the password changes says so, stays, and goes on when it may."""
    settings = make_settings(url=url(RIGHT), partitions=1, **recorded("Transactional"))
    child = worker(spawn, settings)
    admin.config_set("requirepass", "changed")
    admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    child.wait_output("wants another user or password than the url has")
    admin.config_set("requirepass", RIGHT)
    wait_until(lambda: _serves(settings), "its lane is owned, and nothing is said to fail")
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("hello", "")
        wait_until(lambda: texts(home(settings)) == ["hello"], "applied")
    assert child.alive
    assert RIGHT not in child.output()


def _serves(settings: Settings) -> bool:
    (provider,) = read_status(settings).providers
    return bool(provider.lanes_owned) and not provider.failing


def test_a_redis_that_reads_its_data_is_waited_for(spawn, make_settings):
    """A server that is loading is no server that refuses: a worker waits, and says for what."""
    with answering(b"-LOADING Redis is loading the dataset in memory") as there:
        settings = make_settings(url=f"redis://127.0.0.1:{there}")
        child = spawn(*CLI, "worker", env=to_environ(settings))
        child.wait_output("waiting for Redis")
        child.wait_output("loading")
        assert child.terminate() == 0


@contextmanager
def answering(line: bytes) -> Iterator[int]:
    """Serve something on a port that answers every connection with the same, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_answer, args=(listener, line), daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _answer(listener: socket.socket, line: bytes) -> None:
    while True:
        try:
            connection, _address = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(4096)
            connection.sendall((line + b"\r\n") * 4)
