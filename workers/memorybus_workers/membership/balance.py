"""Computes which lanes a worker is to have, from the live workers and the leases of all lanes."""

from collections.abc import Collection, Mapping, Sequence

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus.registry.roster import WorkerInfo
from redis import Redis

from memorybus_workers.hosting.served import ServedInstances
from memorybus_workers.lanes.leases import Leases
from memorybus_workers.membership.assignment import assign, assign_to_one, wanted_lanes

DESERTED_SECONDS = 0.8
"""Seconds after which a worker takes a free lane, even if it is assigned to another worker."""

MOST_SILENT = 5.0
"""The most seconds of silence after which a worker gets no lanes; fewer for short leases."""

_LEAST_SILENT = 2.5


class LaneLease(msgspec.Struct, frozen=True):
    """A lane's lease: its owner, and the seconds for which it runs."""

    worker: str | None
    left: float


class _Last(msgspec.Struct, frozen=True):
    """A lane's last known owner, and when that lease ends by our own clock."""

    worker: str
    until: float


class Balance:
    """Computes which lanes a worker is to have. Belongs to one thread."""

    def __init__(
        self, settings: Settings, clock: Clock, worker: str, served: ServedInstances, leases: Leases
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._worker = worker
        self._served = served
        self._holds = leases.holds
        self._keys = Keys(settings.namespace)
        self._free_since: dict[tuple[str, int], float] = {}
        self._last: dict[tuple[str, int], _Last] = {}

    @property
    def silence(self) -> float:
        """Seconds without a heartbeat after which a worker counts as gone."""
        return max(_LEAST_SILENT, min(MOST_SILENT, self._settings.lease))

    def compute_shares(
        self, redis: Redis, alive: Sequence[WorkerInfo], names: Collection[str]
    ) -> dict[str, frozenset[int]]:
        held = self._read_leases(redis, list(names))
        free = self._free_since.items()
        self._free_since = {lane: since for lane, since in free if lane[0] in names}
        return {name: self._wanted_lanes(redis, name, held[name], alive) for name in names}

    def _wanted_lanes(
        self, redis: Redis, name: str, held: Mapping[int, LaneLease], alive: Sequence[WorkerInfo]
    ) -> frozenset[int]:
        owners = self._owners(redis, name, held)
        weights = {worker.id: worker.capacity for worker in alive if name in worker.ready}
        local = self._served.infos[name].placement == "local"
        assigned = (assign_to_one if local else assign)(owners, weights, name)
        deserted = self._find_deserted(name, owners)
        reserved = {p for p, owner in owners.items() if owner not in (None, self._worker)}
        return wanted_lanes(self._worker, assigned, owners, deserted, reserved)

    def _read_leases(self, redis: Redis, names: list[str]) -> dict[str, dict[int, LaneLease]]:
        partitions = range(self._settings.partitions)
        with redis.pipeline(transaction=False) as pipe:
            for name in names:
                for partition in partitions:
                    pipe.get(self._keys.lease(partition, name))
                    pipe.pttl(self._keys.lease(partition, name))
            replies = iter(pipe.execute(raise_on_error=False))
        return {
            name: {p: _parse_lease(next(replies), next(replies)) for p in partitions}
            for name in names
        }

    def _find_deserted(self, name: str, owners: Mapping[int, str | None]) -> set[int]:
        now = self._clock.monotonic()
        for partition, owner in owners.items():
            if owner is None:
                self._free_since.setdefault((name, partition), now)
            else:
                self._free_since.pop((name, partition), None)
        return {p for p in owners if now - self._free_since.get((name, p), now) >= DESERTED_SECONDS}

    def _owners(
        self, redis: Redis, name: str, held: Mapping[int, LaneLease]
    ) -> dict[int, str | None]:
        """Return the owner of each lane: its lease runs, or should still run by our own clock.

        If a lease ended before its time, either its owner released it, which the lane's hash notes,
        or the server's clock was set forward and the owner is still at work. A lane that we own is
        ours until a renewal fails: a renewal also restores a lease that is gone.
        """
        now = self._clock.monotonic()
        gone, ours = {}, {}
        for partition, lease in held.items():
            last = self._last.get((name, partition))
            if lease.worker is not None:
                left = min(lease.left, self._settings.lease)
                self._last[(name, partition)] = _Last(lease.worker, now + left)
            elif self._holds(name, partition):
                ours[partition] = self._worker
            elif last is not None and last.until > now:
                gone[partition] = last.worker
        working = self._read_unreleased(redis, name, gone) | ours
        return {p: one.worker or working.get(p) for p, one in held.items()}

    def _read_unreleased(self, redis: Redis, name: str, gone: Mapping[int, str]) -> dict[int, str]:
        if not gone:
            return {}
        with redis.pipeline(transaction=False) as pipe:
            for partition in gone:
                pipe.hget(self._keys.lane(partition, name), "owner")
            owners = pipe.execute()
        pairs = zip(gone.items(), owners, strict=True)
        return {p: worker for (p, worker), owner in pairs if owner == worker.encode()}


def _parse_lease(lease: object, left: object) -> LaneLease:
    if not isinstance(lease, bytes):
        return LaneLease(None, 0.0)
    worker = lease.decode("utf-8", "replace").partition(":")[2]
    return LaneLease(worker, max(0, left) / 1000 if isinstance(left, int) else 0.0)
