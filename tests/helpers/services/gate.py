"""A door before a real server or a fake: shut, slow, refusing, or with its connections broken."""

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal

Address = tuple[str, int] | Path
"""Where a server listens: host and port, or a unix socket."""

Trouble = Literal["down", "slow", "refusing", "restarted"]

_REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Gate:
    """Forwards TCP connections to a server.

    Attributes:
        port: where clients connect, on loopback; always the same.
    """

    def __init__(self, target: Address) -> None:
        self._target = target
        self._flow = threading.Event()
        self._refusing = False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.port = 0
        self.heal()

    def heal(self) -> None:
        """Forward everything."""
        self._refusing = False
        self._flow.set()
        if self._listener is None:
            self._listen()

    def befall(self, trouble: Trouble) -> None:
        """Be in trouble until `heal`.

        ``down``: connections are broken and refused. ``slow``: requests arrive, and no answer comes
        back. ``refusing``: requests are answered 503, and do not arrive. ``restarted``:
        connections are broken once; what was asked is done, and nobody is told.
        """
        if trouble == "down":
            listener, self._listener = self._listener, None
            if listener is not None:
                _shut(listener)
            self._break()
        elif trouble == "slow":
            self._flow.clear()
        elif trouble == "refusing":
            self._refusing = True
        else:
            self._break()

    def close(self) -> None:
        self.befall("down")
        self._flow.set()

    def _listen(self) -> None:
        listener = socket.socket(socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.port = int(listener.getsockname()[1])
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        family = socket.AF_UNIX if isinstance(self._target, Path) else socket.AF_INET
        server = socket.socket(family)
        with self._lock:
            self._sockets += [client, server]
        try:
            where = str(self._target) if isinstance(self._target, Path) else self._target
            server.connect(where)
            threading.Thread(target=self._back, args=(client, server), daemon=True).start()
            while asked := client.recv(1 << 16):
                if self._refusing:
                    client.sendall(_REFUSAL)
                    break
                server.sendall(asked)
        except OSError:
            pass  # one of both is gone: so is the other one then
        finally:
            self._forget(client, server)

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while answer := server.recv(1 << 16):
                self._flow.wait()
                client.sendall(answer)
        self._forget(client, server)

    def _forget(self, *pair: socket.socket) -> None:
        for one in pair:
            _shut(one)
        with self._lock:
            self._sockets = [one for one in self._sockets if one not in pair]

    def _break(self) -> None:
        with self._lock:
            broken = list(self._sockets)
        for one in broken:
            _shut(one)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
