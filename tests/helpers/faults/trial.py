"""One run of the fault suite: servers, a writer, workers, sinks, faults, and the verdict."""

import random
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from memorybus.config.settings import Settings, to_environ
from memorybus.outbox.producers import read_taken_sequences
from memorybus.redis.keys import Keys

from helpers.faults import sink
from helpers.faults.crew import PATH, Crew
from helpers.faults.load import Done, Load
from helpers.faults.oracle import Effect, Receipt, Verdict, judge
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.redis.servers import RedisServer

LOST = " is lost"
"""What a worker says when its lane has another owner."""

DRAIN = 120.0
"""Seconds in which everything must be applied after the load has ended."""


class Fault(msgspec.Struct, frozen=True):
    """One fault that fired, and how many events were in the log and not yet applied then."""

    name: str
    in_flight: int


def demand(fired: Sequence[Fault], wanted: int) -> None:
    """Fail a run that proves nothing: too few faults, or one that found nothing in flight."""
    idle = [fault for fault in fired if not fault.in_flight]
    assert len(fired) >= wanted, f"{len(fired)} of {wanted} faults fired"
    assert not idle, f"nothing was in flight at {idle}"


class Outcome(msgspec.Struct, frozen=True):
    """A run's end: the writer's word, the faults, the verdict by provider."""

    done: Done
    faults: tuple[Fault, ...]
    verdicts: Mapping[str, Verdict]


def sinks(directory: Path, *classes: str, **options: Any) -> dict[str, Any]:
    """Return the settings of sink providers, named by their classes, with shared directories."""
    tables = {
        name.lower(): {
            "kind": f"helpers.faults.sink:{name}",
            "directory": str(directory / name.lower()),
            **options,
        }
        for name in classes
    }
    return {"providers": tuple(tables), "provider": tables}


class Trial:
    """One run. `finish` ends it and judges it.

    Attributes:
        settings: of writer and workers.
        server: the log's Redis.
        crew: the workers.
        client: of that server.
        load: the writer, once `write` was called.
        faults: what has fired so far.
    """

    def __init__(
        self,
        settings: Settings,
        server: RedisServer,
        spawn: Spawn,
        rng: random.Random,
        directory: Path,
        crew: Crew | None = None,
    ) -> None:
        self.settings = settings
        self.server = server
        self.rng = rng
        self.crew = crew or Crew(spawn, settings)
        self.faults: list[Fault] = []
        self.load: Load | None = None
        self._spawn = spawn
        self._directory = directory
        self.client = server.client()
        self._keys = Keys(settings.namespace)

    def with_url(self, url: str) -> Settings:
        """Return the settings of a process that sees the log's Redis at another place."""
        return msgspec.structs.replace(self.settings, url=url)

    # -- load and faults --------------------------------------------------------------------------

    def write(
        self,
        *words: str | float,
        within: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> Load:
        """Start the writer (see `helpers.faults.load`) and wait for its first receipts."""
        journal = self._directory / "journal"
        own = ("--journal", str(journal), "--seed", str(self.rng.randrange(1 << 30)))
        around = to_environ(self.settings, {}) | {"PYTHONPATH": PATH} | dict(env or {})
        child = self._spawn(
            *within, "-m", "helpers.faults.load", *own, *map(str, words), env=around
        )
        self.load = Load(child, journal)
        wait_until(lambda: self.load and self.load.flows, "the writer publishes", 60)
        return self.load

    def fault(self, name: str, in_flight: int | None = None) -> None:
        """Note a fault that has just fired, with what is in flight."""
        self.faults.append(Fault(name, self.in_flight() if in_flight is None else in_flight))

    def catch(self, name: str) -> None:
        """Wait for a moment with something in flight, and note the fault that fires now."""
        self.fault(name, wait_until(self.in_flight, "something is in flight", 60))

    # -- what is where ----------------------------------------------------------------------------

    def in_flight(self) -> int:
        """Count what is in the log and not passed by some provider; the largest of them."""
        return max(self.backlog(name) for name in self.settings.providers)

    def backlog(self, name: str) -> int:
        """Count what a provider has not passed."""
        with self.client.pipeline(transaction=False) as pipe:
            for partition in range(self.settings.partitions):
                pipe.hget(self._keys.state(partition), "n")
                pipe.hget(self._keys.lane(partition, name), "n")
            replies = [int(reply or 0) for reply in pipe.execute()]
        return sum(max(0, head - n) for head, n in zip(replies[::2], replies[1::2], strict=True))

    def owners(self) -> Counter[int]:
        """Return how many lanes each process owns now, by its id."""
        keys = [
            self._keys.lease(partition, name)
            for partition in range(self.settings.partitions)
            for name in self.settings.providers
        ]
        held = [value.decode() for value in self.client.mget(keys) if value]
        return Counter(int(value.rsplit("-", 2)[1]) for value in held)

    def epochs(self) -> int:
        """Return the sum of all lanes' epochs: how often a lane was taken."""
        keys = [
            self._keys.lane(partition, name)
            for partition in range(self.settings.partitions)
            for name in self.settings.providers
        ]
        return sum(int(self.client.hget(key, "epoch") or 0) for key in keys)

    def wait_shared_out(self) -> None:
        """Wait until every lane has an owner and no worker has more of a provider's than another.

        Before that lanes move by themselves, which a row may not take for its fault's doing.
        """
        providers = len(self.settings.providers)
        lanes = self.settings.partitions * providers

        def shared() -> bool:
            owners = self.owners()
            owned = [owners[member.pid] for member in self.crew.checked()]
            even = max(owned) - min(owned) <= providers
            return owners.total() == lanes and all(owned) and even

        wait_until(shared, "the lanes are shared out among all workers", 60)

    def refusals(self) -> int:
        """Count the lanes that workers gave up because they were told of another owner."""
        return sum(m.child.output().count(LOST) for m in self.crew.members)

    def sink(self, name: str) -> Path:
        """Return where a sink keeps its files."""
        return Path(self.settings.provider[name]["directory"])

    def effects(self, name: str) -> list[Effect]:
        """Return what a sink holds."""
        return sink.effects(self.sink(name))

    def receipts(self) -> list[Receipt]:
        """Return the journal."""
        return self.load.receipts() if self.load else []

    def parked(self, name: str) -> set[str]:
        """Return the ids in a provider's dead letters."""
        found = set()
        for partition in range(self.settings.partitions):
            for _, fields in self.client.xrange(self._keys.dead(partition, name)):
                found.add(str(msgspec.json.decode(fields[b"r"])["event_id"]))
        return found

    def spooled(self) -> set[str]:
        """Return the ids that lie in spools nobody has open, and Redis has not taken."""
        found: set[str] = set()
        for path in self.settings.spool_dir.glob("*.db"):
            has = read_taken_sequences(self.client, self._keys, self.settings.partitions, path.stem)
            with closing(sqlite3.connect(path, timeout=5)) as db:
                rows = db.execute("select seq, partition, id from events").fetchall()
            found |= {bytes(raw).hex() for seq, p, raw in rows if seq > has.get(p, 0)}
        return found

    # -- the end ----------------------------------------------------------------------------------

    def drain(self, timeout: float = DRAIN) -> Done:
        """End the writer, and wait until all that it published has been passed by everyone."""
        assert self.load is not None, "nothing was written"
        done = self.load.stop(timeout + 60)
        wait_until(
            lambda: self.crew.checked() and self.in_flight() == 0, "everything is applied", timeout
        )
        return done

    def finish(self, *, faults: int = 1, timeout: float = DRAIN) -> Outcome:
        """End the run and judge it; fail if too few faults fired, or one found nothing in flight.

        Args:
            faults: how many must have fired.
            timeout: seconds in which the backlog must be gone.
        """
        return self.outcome_of(self.drain(timeout), faults)

    def outcome_of(self, done: Done, faults: int) -> Outcome:
        """Judge a run that was drained; its workers end."""
        self.crew.stop()
        demand(self.faults, faults)
        return Outcome(done, tuple(self.faults), {n: self.judge(n) for n in self.sinks})

    @property
    def sinks(self) -> list[str]:
        return [n for n, table in self.settings.provider.items() if "sink" in table["kind"]]

    def judge(self, name: str) -> Verdict:
        """Return the verdict over one provider."""
        return judge(
            self.receipts(), self.effects(name), parked=self.parked(name), spooled=self.spooled()
        )
