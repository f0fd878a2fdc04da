"""Row 5: the master dies while its replica lags, and sentinels promote that replica (G1, G2)."""

import shutil
from collections.abc import Iterator

import pytest
import redis
from helpers.faults import sink
from helpers.faults.load import LARGEST_GROUP
from helpers.faults.results import counted
from helpers.faults.scale import QUICK, rounds
from helpers.faults.trial import Trial
from helpers.processes.waiting import still, wait_until
from helpers.redis.clusters import Sentinels, running
from helpers.redis.servers import RedisServer
from memorybus.config.settings import Settings
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys

WORKERS = 2
SESSIONS = 64
BEHIND = 300 if QUICK else 1_000
"""Events that only the master has when it dies."""
CLASSES = ("Transactional", "Keyed")


class Watched:
    """The log behind sentinels, as a trial needs it."""

    def __init__(self, sentinels: Sentinels) -> None:
        self.url = sentinels.url
        self._clients: list[redis.Redis] = []

    def client(self) -> redis.Redis:
        """Return a client that finds the master by itself."""
        client = connect_redis(Settings(url=self.url))
        self._clients.append(client)
        return client

    def close(self) -> None:
        """Close the clients."""
        for client in self._clients:
            client.close()


@pytest.fixture
def sentinels() -> Iterator[Sentinels]:
    """Return a master and its replica with three sentinels."""
    group = Sentinels()
    with running(group):
        yield group


@pytest.fixture
def watched(sentinels: Sentinels) -> Iterator[Watched]:
    """Return the log behind them."""
    log = Watched(sentinels)
    yield log
    log.close()


def stall_replica(master: RedisServer, replica: RedisServer) -> None:
    """Stop the replica, and drop what the master has in its buffers for it."""
    replica.freeze()
    master.client().execute_command("CLIENT", "KILL", "TYPE", "replica")


def promote(sentinels: Sentinels, master: RedisServer, replica: RedisServer) -> None:
    """Let the master die; the replica, as far behind as it is, takes its place."""
    master.kill()
    replica.thaw()
    # Sentinels that were held up for two seconds trust their clocks again after thirty.
    wait_until(lambda: sentinels.master() is replica, "the replica is the master", 150)


def under_way(trial: Trial, *words: str, env: dict[str, str] | None = None) -> None:
    """Start load and workers, and wait until all sinks have taken events."""
    trial.write(*words, env=env)
    trial.crew.start(WORKERS)
    trial.crew.wait_ready()
    wait_until(lambda: _least(trial) > BEHIND, "events flow", 60)


def is_found(trial: Trial) -> bool:
    """Whether every sentinel names a master that answers."""
    try:
        return bool(trial.client.info("replication")["role"] == "master")
    except redis.RedisError:
        return False


def in_log(trial: Trial) -> int:
    """Count the turns that the master has; each session also has an event for its beginning."""
    keys, partitions = Keys(trial.settings.namespace), range(trial.settings.partitions)
    return sum(int(trial.client.hget(keys.state(p), "n") or 0) for p in partitions) - SESSIONS


def _least(trial: Trial) -> int:
    return min(sink.count(trial.sink(name)) for name in trial.sinks)


@pytest.mark.fault
@pytest.mark.skipif(QUICK, reason="one failover in CI; integration/test_sentinel.py holds this one")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", rounds(25))
def test_what_only_the_master_had_is_sent_again(sentinels, watched, make_trial, report, number):
    """G1, G2, G4: the loss of what was `logged` is found and resent; no effect comes twice."""
    trial = make_trial(watched, *CLASSES, spool_keep=60.0)
    master, replica = sentinels.servers
    under_way(trial)
    stall_replica(master, replica)
    seen = in_log(trial)
    wait_until(lambda: in_log(trial) > seen + BEHIND, "only the master has the newest", 60)
    trial.catch("failover")
    promote(sentinels, master, replica)
    wait_until(lambda: is_found(trial), "the new master is found", 60)
    outcome = trial.finish()
    # What Redis took, less what it has: it took that from the writer twice.
    again = outcome.done.counters["sent"] - in_log(trial) - SESSIONS
    report(
        faults=len(outcome.faults), **counted(outcome.verdicts.values()), lost_and_sent_again=again
    )
    assert again > 0, "the replica was not behind: nothing was lost"
    for name, verdict in outcome.verdicts.items():
        assert not verdict.faults(), name
        assert verdict.parked == 0


@pytest.mark.fault
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", rounds(25))
def test_what_was_replicated_outlives_producer_and_master(
    sentinels, watched, make_trial, tmp_path, report, number
):
    """G1: an event receipted as `replicated` needs neither its producer's spool nor the master."""
    trial = make_trial(watched, *CLASSES)
    master, replica = sentinels.servers
    home = tmp_path / "producer"
    under_way(trial, "--level", "replicated", env={"MEMORYBUS_DATA_DIR": str(home)})
    stall_replica(master, replica)
    wait_until(still(lambda: len(trial.receipts()), 0.5), "nothing more is replicated", 20)
    trial.fault("failover", in_flight=in_log(trial) - len(trial.receipts()))
    assert trial.load is not None
    trial.load.child.kill()
    shutil.rmtree(home)
    promote(sentinels, master, replica)
    wait_until(lambda: is_found(trial), "the new master is found", 60)
    wait_until(lambda: trial.crew.checked() and trial.in_flight() == 0, "all is applied", 60)
    trial.crew.stop()
    verdicts = {name: trial.judge(name) for name in trial.sinks}
    report(
        faults=len(trial.faults),
        **counted(verdicts.values()),
        without_receipt=max(verdict.unpromised for verdict in verdicts.values()),
    )
    assert {receipt.level for receipt in trial.receipts()} == {"replicated"}
    for name, verdict in verdicts.items():  # its last group had come to the replica at most
        assert not verdict.faults(may_exceed=LARGEST_GROUP), name
