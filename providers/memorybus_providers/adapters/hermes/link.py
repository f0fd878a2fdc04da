"""Connects to a child, starts it when it is first needed, and kills it if it hangs."""

import contextlib
import fcntl
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memorybus import private
from memorybus.clock import Clock

from memorybus_providers.adapters.hermes.child import frames
from memorybus_providers.adapters.hermes.launch import (
    Launch,
    kill_process_group,
    read_pid,
    socket_path,
    start_child,
)
from memorybus_providers.errors import Permanent, ProviderError, Transient, Unavailable

_MAX_TRIES = 3
_POLL_SECONDS = 0.02
_LOADING_SECONDS = 30.0
"""Seconds that a slow machine may take to import Hermes; until then calls raise `Unavailable`."""


class OwnersMixed(Permanent):
    """With its configuration, the plugin would mix an owner's memories with those of others."""


_MEANINGS: Mapping[str, type[ProviderError]] = {
    frames.MIXED: OwnersMixed,
    "Permanent": Permanent,
    "Transient": Transient,
    "Unavailable": Unavailable,
}


class HostLink:
    """A connection to the child for a plugin and a HERMES_HOME. Belongs to one thread.

    Args:
        launch: see `Launch`.
    """

    def __init__(self, launch: Launch, clock: Clock) -> None:
        self._launch = launch
        self._clock = clock
        self._connection: socket.socket | None = None
        self.pid = 0

    def ask(self, request: Mapping[str, Any], seconds: float, *, ends_hung: bool) -> Any:
        """Return the answer to a request.

        Args:
            request: see the child's `Host`.
            seconds: how long the child may take, including the time to start it.
            ends_hung: whether a child that takes longer is killed, so that nothing of the request
                happens later. Recalls do not kill it, since a lane may be using it.

        Raises:
            Unavailable: no child can be started, or the plugin's backend is down.
            Transient: the child took too long or ended, or the plugin's failure is temporary.
            Permanent: the plugin refuses this event.
        """
        until = self._clock.monotonic() + seconds
        connection = self._connect_until(until)
        try:
            connection.settimeout(max(_POLL_SECONDS, until - self._clock.monotonic()))
            frames.send(connection, dict(request))
            answer = frames.receive(connection)
        except TimeoutError as error:
            self.close(kill_child=ends_hung)
            raise Transient(f"{self._name} took longer than {seconds:.1f} s") from error
        except frames.FrameError as error:
            self.close()
            raise Permanent(f"{self._name}: {error}") from error
        except OSError as error:
            self.close()
            raise Transient(f"{self._name}: the connection broke: {error}") from error
        return self._value(answer)

    def close(self, *, kill_child: bool = False) -> None:
        """Close the connection, and kill the child if asked to; else it ends when it is unused."""
        if kill_child and self.pid:
            kill_process_group(self.pid)
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self.pid = 0

    @property
    def _name(self) -> str:
        return f"the hosted plugin {self._launch.plugin}"

    def _value(self, answer: dict[str, Any] | None) -> Any:
        if answer is None:
            self.close()
            raise Transient(f"{self._name} ended during a call; see {self._launch.log}")
        failure = answer.get("error")
        if answer.get("exhausted"):
            self.close(kill_child=True)  # failed instances have left too many threads in it
        if failure:
            raise _error_from_failure(failure)
        return answer.get("value")

    def _connect_until(self, until: float) -> socket.socket:
        """Return the open connection, or a new one if the child has ended meanwhile."""
        if self._connection is not None and _is_closed(self._connection):
            self.close()
        if self._connection is None:
            self._connection = self._connect_and_greet(until)
        return self._connection

    def _connect_and_greet(self, until: float) -> socket.socket:
        for _ in range(_MAX_TRIES):  # a child that is ending may still accept a connection
            connection = self._reach_child(until)
            try:
                connection.settimeout(max(_POLL_SECONDS, until - self._clock.monotonic()))
                hello = frames.receive(connection)
            except TimeoutError as error:
                connection.close()
                self._give_up_starting()
                raise Unavailable(f"{self._name} does not start: see {self._launch.log}") from error
            except (OSError, frames.FrameError):
                hello = None
            if hello is not None:
                return self._check_hello(connection, hello)
            connection.close()
        raise Unavailable(f"{self._name} ends as soon as it starts: see {self._launch.log}")

    def _give_up_starting(self) -> None:
        """Kill a child that does not greet, unless it may still be loading the plugin."""
        begun = self._launch.lock.stat().st_mtime
        if self._clock.now_ms() / 1000 - begun > _LOADING_SECONDS:
            kill_process_group(self.pid)

    def _check_hello(self, connection: socket.socket, hello: dict[str, Any]) -> socket.socket:
        failure = hello.get("failure")
        if failure:
            connection.close()
            error = _error_from_failure(failure)
            raise Unavailable(str(error)) from error  # it has not started: no event is at fault
        if hello.get("version") != frames.VERSION:
            connection.close()
            raise Unavailable(f"{self._name} was started by another release; it ends when unused")
        self.pid = int(hello["pid"])
        return connection

    def _reach_child(self, until: float) -> socket.socket:
        """Connect while holding the start lock; start a child if nobody listens."""
        private.directory(self._launch.place)
        path = socket_path(self._launch.place)
        with self._locked(until) as lock:
            connection = _connect(path)
            if connection is None:
                lock.write_text("")  # a crash must not leave the id of an earlier child in it
                lock.write_text(
                    str(start_child(self._launch, path, until - self._clock.monotonic()))
                )
                connection = _connect(path)
            if connection is None:
                raise Unavailable(f"{self._name} does not listen: see {self._launch.log}")
            self.pid = read_pid(lock)
        return connection

    @contextlib.contextmanager
    def _locked(self, until: float) -> Iterator[Path]:
        path = self._launch.lock
        with open(path, "a", opener=private.opener) as file:
            while not _lock(file.fileno()):
                if self._clock.monotonic() >= until:
                    raise Unavailable(f"{self._name} is being started by another process")
                self._clock.sleep(_POLL_SECONDS)
            yield path


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _connect(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return connection


def _is_closed(connection: socket.socket) -> bool:
    """Return whether the other end has closed.

    The child sends nothing without a request, so only the end of the stream can be read.
    """
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _error_from_failure(failure: Mapping[str, str]) -> ProviderError:
    """Return the provider's error for a failure of the child, with its trace as a note."""
    error = _MEANINGS.get(failure["class"], Permanent)(failure["message"])
    error.add_note(failure["trace"])
    return error
