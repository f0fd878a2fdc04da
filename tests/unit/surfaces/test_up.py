"""The pure and the local parts of `up`."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.surfaces import up


def test_restarts_back_off_and_are_bounded():
    """A worker that dies at once is restarted ever later, up to the bound."""
    delays = [0.0]
    for _ in range(10):
        delays.append(up.next_delay(1.0, delays[-1]))

    assert delays[1:4] == [up.FIRST_DELAY, up.FIRST_DELAY * 2, up.FIRST_DELAY * 4]
    assert delays[-1] == up.LONGEST_DELAY


@given(st.floats(0, 1e6))
def test_a_worker_that_lived_long_starts_over(previous):
    """After a healthy life the next restart is quick again."""
    assert up.next_delay(up.HEALTHY, previous) == up.FIRST_DELAY


def test_there_is_one_up_per_data_directory(tmp_path):
    """A second one is refused with a clear message; after the first has gone it may start."""
    second = up.only_one(tmp_path)
    with up.only_one(tmp_path), pytest.raises(up.AlreadyUp, match="stop it first"):
        second.__enter__()

    with up.only_one(tmp_path):
        assert (tmp_path / "up.lock").exists()


def test_a_socket_without_a_listener_is_known(tmp_path):
    """A killed server leaves its socket file: nobody listens there."""
    path = tmp_path / "s"
    assert not up.listens(path)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert up.listens(path)

    assert path.exists()
    assert not up.listens(path)
