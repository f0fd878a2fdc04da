"""The pure and the local parts of `up`."""

import socket

import pytest
from memorybus.operations import up


def test_there_is_one_up_per_data_directory(tmp_path):
    """A second one is refused with a clear message; after the first has gone it may start."""
    second = up.up_lock(tmp_path)
    with up.up_lock(tmp_path), pytest.raises(up.AlreadyUp, match="stop it first"):
        second.__enter__()

    with up.up_lock(tmp_path):
        assert (tmp_path / "up.lock").exists()


def test_a_socket_without_a_listener_is_known(tmp_path):
    """A killed server leaves its socket file: nobody listens there."""
    path = tmp_path / "s"
    assert not up.is_listening(path)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert up.is_listening(path)

    assert path.exists()
    assert not up.is_listening(path)
