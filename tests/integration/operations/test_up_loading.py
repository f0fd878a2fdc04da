"""`memorybus up` told to end while its server still reads its data."""

import os
import signal
from pathlib import Path

import pytest
from helpers.processes.waiting import wait_until
from memorybus.config.settings import Settings
from memorybus.embedded.server import EmbeddedRedis
from memorybus_console.operations.local_server import is_listening
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, RedisError
from redis.retry import Retry

SLOW = b"*4\r\n$5\r\nBITOP\r\n$3\r\nNOT\r\n$1\r\nb\r\n$1\r\na\r\n"
COPIES = 200_000
"""Times that a server copies two megabytes while it reads its file: half a minute or more."""


def slow_to_load(server: EmbeddedRedis) -> None:
    """Leave a file that the server takes long to read."""
    with server:
        client = Redis(unix_socket_path=str(server.socket))
        client.setbit("a", (1 << 24) - 1, 1)
        client.close()
    path = next(server.directory.rglob("*.incr.aof"), server.directory / "appendonly.aof")
    with path.open("ab") as file:
        file.write(SLOW * COPIES)


def loads(path: Path) -> bool:
    """Say whether a server is there and reads its data."""
    client = Redis(unix_socket_path=str(path), socket_timeout=5, retry=Retry(NoBackoff(), 0))
    try:
        client.ping()
    except BusyLoadingError:
        return True
    except RedisError:
        return False
    finally:
        client.close()
    raise AssertionError("the server has read its data already")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_up_ends_while_its_server_loads(how, spawn, short_dir):
    """G9: a signal ends `up` within seconds however much its server has to read, and that, too."""
    server = EmbeddedRedis(Settings(data_dir=short_dir))
    slow_to_load(server)
    env = dict(os.environ) | {"MEMORYBUS_DATA_DIR": str(short_dir)}
    child = spawn("-m", "memorybus", "up", "--json", env=env)
    wait_until(lambda: loads(server.socket), "the server loads")

    child.send(how)

    assert child.wait(25) == 0, child.output()
    assert not is_listening(server.socket)
    assert "Received shutdown signal during loading" in server.log_path.read_text()
    wait_until(lambda: spawn.descendants() == [], "no process is left")
