"""What a worker tells of itself by its heartbeats."""

from importlib.metadata import version

from helpers.processes.waiting import wait_until
from helpers.stories.scenario import recorded, thread_worker
from memorybus.health.monitor import read_status
from memorybus_workers.membership import presence


def test_the_version_is_that_of_what_runs(redis_client, make_settings, monkeypatch):
    """After an upgrade on the disk a worker tells the version that it was started with."""
    settings = make_settings(**recorded("Keyed"))
    with thread_worker(settings):
        monkeypatch.setattr(presence, "version", lambda _: "99.0")
        (before,) = read_status(settings).workers

        def beaten() -> str:
            (worker,) = read_status(settings).workers
            return worker.version if worker.heartbeat_at > before.heartbeat_at else ""

        assert wait_until(beaten, "a heartbeat was written since") == version("memorybus")
