"""Peers and the bus on one Redis server, over TCP, one after the other: ratios of one run.

Each peer gets the same turns as JSON or what else it makes of plain objects, in a database emptied
before; then its worker starts. A tally in shared memory counts the handler's calls, so that
start-up is left out for all: the rate is from the first call to the last. Ours: a no-op provider
in a real worker, the log filled as by a bus. The server is the one that memorybus would start
(streaq needs Redis 7 or Valkey).

Recovery: all peers at once, each in a database of its own. A worker takes the only event, is
killed with all its children, and a second worker starts at that moment.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from calls import Calls
from filling import Filler, spread
from gauge import Figures, LeftOut, Size, medians
from memorybus.embedded.binary import find_server_binary
from pace import Applied
from stage import WAIT_SECONDS, Stage, Worker, wait_for
from tally import Seen, Tally

from peers.table import HERE, HOME, PEERS, Peer

_OURS = "bench.providers:TallyProvider"
_OURS_SLOW = "bench.providers:SlowProvider"
_KEYS = 100
_DRAINED_EVENTS = 200_000
_FALLEN_SILENT = 20.0
"""Seconds without a call after which a peer's rate is that of what it did."""


def measure(size: Size) -> Figures:
    """Return rates by peer (``peers.…``), and ours over the fastest.

    Raises:
        LeftOut: their environments are not there.
    """
    if not (HOME / ".installed").exists():
        raise LeftOut(f"no environments in {HOME}; make them with `make bench-peers`")
    with Stage(find=find_server_binary, concurrency=128) as stage:
        stage.listen()
        runs = [_run(stage, number, size) for number in range(size.peer_runs)]
        figures = medians(runs) | {"peers.server_major": find_server_binary().version[0]}
        if size.peer_patience:
            figures |= _recoveries(stage, size.peer_patience)
        return figures


def _run(stage: Stage, number: int, size: Size) -> Figures:
    chosen = [peer for peer in PEERS if peer.quick or not size.quick]
    ours = _ours(stage, f"noop{number}", _OURS, _DRAINED_EVENTS)
    slow = _ours(stage, f"slow{number}", _OURS_SLOW, size.slow)
    noops = {p: _rate(stage, p, "noop", p.noop) for p in chosen if p.noop}
    slows = {p: _rate(stage, p, "slow", p.slow) for p in chosen if p.slow}
    return {
        "drain_noop_over_fastest_batch_peer": ours / max(noops[p] for p in noops if p.batch),
        "drain_noop_over_fastest_single_peer": ours / max(noops[p] for p in noops if not p.batch),
        "slow_provider_over_fastest_peer": slow / max(slows.values()),
        "peers.noop_per_s.memorybus": ours,
        **{f"peers.noop_per_s.{p.name}": noops[p] for p in noops},
        "peers.slow_per_s.memorybus": slow,
        **{f"peers.slow_per_s.{p.name}": slows[p] for p in slows},
    }


def _ours(stage: Stage, name: str, kind: str, events: int) -> float:
    stage.redis.flushall()
    Filler(stage, spread(stage.settings.partitions, _KEYS)).fill(events)
    settings = stage.with_providers({name: kind})
    with stage.workers(settings, 1):
        stage.await_applied(name)
    return Applied(settings, name).tallies()[0].seen().per_s


def _rate(stage: Stage, peer: Peer, task: str, events: int) -> float:
    stage.redis.flushall()
    directory = stage.data_dir / "peers" / f"{peer.name}-{task}-{time.monotonic_ns()}"
    environment = _environment(stage, peer, task, directory, 0)
    _fill(peer, environment, events)
    tally = Tally(directory / "tally")
    with _working(peer, environment, directory):
        return _finished(peer, tally, events).per_s


def _finished(peer: Peer, tally: Tally, events: int) -> Seen:
    """Wait until a peer has done its events, or does no more of them."""
    moved = time.monotonic()
    seen = tally.seen()
    while seen.count < events:
        time.sleep(0.02)
        now = tally.seen()
        if now.count != seen.count:
            moved = time.monotonic()
        elif time.monotonic() - moved > _FALLEN_SILENT:
            raise TimeoutError(f"{peer.name} did {now.count} of {events} events, then no more")
        seen = now
    return seen


def _fill(peer: Peer, environment: Mapping[str, str], events: int) -> None:
    done = subprocess.run(
        peer.fill(events),
        cwd=HERE,
        env=environment,
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{peer.name} took no events: {done.stderr.decode()[-500:]}")


def _environment(
    stage: Stage, peer: Peer, task: str, directory: Path, database: int
) -> dict[str, str]:
    directory.mkdir(parents=True, exist_ok=True)
    return os.environ | {
        "PATH": os.pathsep.join((str(peer.programs), os.environ.get("PATH", ""))),
        "PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parent))),
        "PYTHONWARNINGS": "ignore",
        "PEER_URL": f"{stage.settings.url.rpartition('/')[0]}/{database}",
        "PEER_TASK": task,
        "PEER_DIR": str(directory),
        "PEER_FORM": peer.form,
        "PEER_CONCURRENCY": str(peer.concurrency),
    }


@contextmanager
def _working(peer: Peer, environment: Mapping[str, str], directory: Path) -> Iterator[Worker]:
    """Run a peer's worker, a process group of its own, until the context ends."""
    log = directory / "worker.log"
    with log.open("ab") as said:
        worker = subprocess.Popen(
            peer.work, cwd=HERE, env=environment, stdout=said, stderr=said, start_new_session=True
        )
    try:
        yield worker
    except BaseException as error:
        error.add_note(f"{peer.name} said: {log.read_text(errors='replace')[-800:]}")
        raise
    finally:
        _kill(worker)


def _kill(worker: Worker) -> None:
    """End a worker and all its children at once."""
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait(WAIT_SECONDS)


# -- recovery ---------------------------------------------------------------------------------


class _Victim:
    """A peer whose worker is killed with the only event in its handler."""

    def __init__(self, stage: Stage, peer: Peer, database: int) -> None:
        """Give it its event."""
        directory = stage.data_dir / "peers" / f"{peer.name}-recovery"
        self.peer = peer
        self.calls = Calls(directory / "calls")
        self._directory = directory
        self._environment = _environment(stage, peer, "hold", directory, database)
        self._killed_at = 0
        _fill(peer, self._environment, 1)

    def kill(self, working: ExitStack) -> None:
        """Start a worker, wait until it holds the event, kill it, start another."""
        with _working(self.peer, self._environment, self._directory):
            wait_for(f"{self.peer.name} to be called", lambda: len(self.calls.seen()) == 1)
            self._killed_at = time.monotonic_ns()
        working.enter_context(_working(self.peer, self._environment, self._directory))

    def seconds(self) -> float | None:
        """Return how long after the kill the event was run again; None if it was not yet."""
        seen = self.calls.seen()
        return (seen[1].at - self._killed_at) / 1e9 if len(seen) > 1 else None


def _recoveries(stage: Stage, patience: float) -> Figures:
    stage.redis.flushall()
    victims = [
        _Victim(stage, p, n) for n, p in enumerate((p for p in PEERS if p.timed_recovery), 1)
    ]
    with ExitStack() as working:
        for victim in victims:
            victim.kill(working)
        until = time.monotonic() + patience
        while time.monotonic() < until and None in [victim.seconds() for victim in victims]:
            time.sleep(0.1)
        found = {victim.peer.name: victim.seconds() for victim in victims}
    return {
        f"peers.recovery_after_kill_s.{name}"
        if seconds is not None
        else f"peers.not_recovered_within_s.{name}": seconds if seconds is not None else patience
        for name, seconds in found.items()
    }
