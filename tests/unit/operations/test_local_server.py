"""The server that a command starts for itself."""

import socket

from memorybus_console.operations.service import is_listening


def test_a_socket_without_a_listener_is_known(tmp_path):
    """A killed server leaves its socket file: nobody listens there."""
    path = tmp_path / "s"
    assert not is_listening(path)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert is_listening(path)

    assert path.exists()
    assert not is_listening(path)
