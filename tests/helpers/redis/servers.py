"""Real Redis servers for tests, on a unix socket in a short directory of their own."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import redis
from memorybus.embedded.binary import find_server_binary
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from helpers.processes.waiting import wait_until

START = 60.0
"""Seconds in which a server must have read its file, which may hold a hundred megabytes."""

DEFAULTS = {
    "port": "0",
    "save": "",
    "appendonly": "no",
    "appendfsync": "everysec",
    "maxmemory-policy": "noeviction",
    "daemonize": "no",
}


def unreachable_client() -> redis.Redis:
    """Return a client of a server that is nowhere; it tries once, so its error comes at once."""
    return redis.Redis(unix_socket_path="/nowhere", retry=Retry(NoBackoff(), 0))


class RedisServer:
    """A server that a test may kill, freeze and start again on the same data.

    Args:
        binary: which server; the one of `find_server_binary` if None.
        sentinel: the file of a sentinel, which this then is; options do not count.
        options: redis.conf options by name, with ``_`` for ``-``; they override `DEFAULTS`.
    """

    def __init__(
        self, *, binary: Path | None = None, sentinel: Path | None = None, **options: str | int
    ) -> None:
        self.binary = binary or find_server_binary().path
        self._sentinel = sentinel
        self.directory = Path(tempfile.mkdtemp(prefix="mb-r-"))
        self.socket = self.directory / "s"
        self.log_path = self.directory / "log"
        self.url = f"unix://{self.socket}"
        given = {name.replace("_", "-"): str(value) for name, value in options.items()}
        self.options = DEFAULTS | given
        self._process: subprocess.Popen[bytes] | None = None
        self._clients: list[redis.Redis] = []

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._running().pid

    @property
    def alive(self) -> bool:
        """Whether the process runs (a frozen one does)."""
        return self._process is not None and self._process.poll() is None

    def start(self, **options: str | int) -> None:
        """Start on the data that is there, and wait for an answer."""
        assert not self.alive, "the server runs already"
        given = {name.replace("_", "-"): str(value) for name, value in options.items()}
        self.options |= given
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._arguments(), stdout=log, stderr=log, start_new_session=True
            )
        wait_until(self._answers, f"redis-server answers on {self.socket}", START)

    def client(self, **options: Any) -> redis.Redis:
        """Return a client without retries; it is closed with the server's directory."""
        retry = Retry(NoBackoff(), 0)
        client = redis.Redis(unix_socket_path=str(self.socket), retry=retry, **options)
        self._clients.append(client)
        return client

    def kill(self) -> None:
        """SIGKILL: no farewell, no last sync."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Kill and start again."""
        self.kill()
        self.start()

    def freeze(self) -> None:
        """SIGSTOP: connections stay open, nothing answers. Returns once all its threads stand."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """SIGCONT: go on as if nothing had been."""
        os.kill(self.pid, signal.SIGCONT)

    def log(self) -> str:
        """Return what the server has said."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def remove(self) -> None:
        """Kill what runs, close the clients, delete the data."""
        for client in self._clients:
            client.close()
        if self.alive:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "the server was never started"
        return self._process

    def _arguments(self) -> list[str]:
        own = {"dir": str(self.directory), "unixsocket": str(self.socket)}
        options = own if self._sentinel else self.options | own
        words = [part for name in options for part in (f"--{name}", options[name])]
        kind = [str(self._sentinel), "--sentinel"] if self._sentinel else []
        return [str(self.binary), *kind, *words]

    def _answers(self) -> bool:
        assert self.alive, f"redis-server ended at once: {self.log()}"
        probe = redis.Redis(unix_socket_path=str(self.socket), retry=Retry(NoBackoff(), 0))
        try:
            return bool(probe.ping())
        except RedisError:
            return False
        finally:
            probe.close()

    def _end(self, how: signal.Signals) -> None:
        process = self._running()
        process.send_signal(signal.SIGCONT)
        process.send_signal(how)
        process.wait(30)  # a master waits ten by itself for a replica that lags behind
