"""In every Python of a test's Hermes: sockets reach this host only, and who tries more is noted."""

import os
import socket
from typing import Any

_LOCAL = ("127.0.0.1", "::1", "localhost")
_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex
_getaddrinfo = socket.getaddrinfo


def _checked(host: Any) -> None:
    name = host.decode() if isinstance(host, bytes) else host
    if name is None or name in _LOCAL:
        return
    with open(os.environ["HERMES_TEST_OUTSIDE"], "a") as note:
        note.write(f"{name}\n")
    raise OSError(f"only loopback is allowed here, not {name}")


def _guarded(call: Any) -> Any:
    def connect(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _checked(address[0])
        return call(self, address)

    return connect


def _resolved(host: Any, *rest: Any, **more: Any) -> Any:
    _checked(host)
    return _getaddrinfo(host, *rest, **more)


socket.socket.connect = _guarded(_connect)
socket.socket.connect_ex = _guarded(_connect_ex)
socket.getaddrinfo = _resolved
