"""The pure and the local parts of `up`."""

import pytest
from memorybus_console.operations import up


def test_there_is_one_up_per_data_directory(tmp_path):
    """A second one is refused with a clear message; after the first has gone it may start."""
    second = up.up_lock(tmp_path)
    with up.up_lock(tmp_path), pytest.raises(up.AlreadyUp, match="stop it first"):
        second.__enter__()

    with up.up_lock(tmp_path):
        assert (tmp_path / "up.lock").exists()
