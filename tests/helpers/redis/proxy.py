"""A proxy before a Redis socket, that can lose a reply: the command ran, and nobody is told."""

import socket
import threading
from contextlib import suppress
from pathlib import Path


class Proxy:
    """Forwards connections of a unix socket to another one.

    Attributes:
        url: where clients connect.
        dropped: whether the reply that was to be lost has been lost.
    """

    def __init__(self, target: Path, own: Path) -> None:
        self.url = f"unix://{own}"
        self.dropped = False
        self._target = target
        self._armed = b""
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(own))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def drop_reply_after(self, command: bytes) -> None:
        """Lose the reply to the next request that holds `command`, and break its connection."""
        self.dropped = False
        self._armed = command

    def close(self) -> None:
        for one in [self._listener, *self._sockets]:
            _shut(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            self._sockets += [client, server]
            try:
                server.connect(str(self._target))
            except OSError:  # there is no server now: the client finds its connection broken
                _shut(client)
                continue
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        """Serve one connection of a client that waits for each reply before it goes on."""
        losing = threading.Event()
        threading.Thread(target=self._back, args=(client, server, losing), daemon=True).start()
        with suppress(OSError):
            while request := client.recv(1 << 20):
                if self._armed and self._armed in request:
                    self._armed = b""
                    losing.set()
                server.sendall(request)
        _shut(server)
        _shut(client)

    def _back(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with suppress(OSError):
            while reply := server.recv(1 << 20):
                if losing.is_set():
                    self.dropped = True
                    _shut(client)
                    return
                client.sendall(reply)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
