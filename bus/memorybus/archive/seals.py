"""The reports of archivers, which they write to Redis: what is sealed, and what hinders them."""

from collections.abc import Mapping
from typing import Any

import msgspec
from redis import Redis

from memorybus.redis import scripts
from memorybus.redis.facts import read_server_ms
from memorybus.redis.hashes import decode_or_none, decode_readable
from memorybus.redis.keys import Keys, lane_name

ALIVE_SECONDS = 60.0  # seconds after its last report for which an archiver counts as alive
_RETENTION_FIELD = "@retention"


class ArchivedPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the archive has of a partition."""

    segments: int = 0  # the number of segments
    events: int = 0  # the rows in them
    bytes: int = 0  # the size of their files
    first_at: int = 0  # when its first event entered the log (wall time, milliseconds); 0 for none


class ArchiverReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A worker's report about its archiving."""

    at: int  # when it was written (the server's wall time, milliseconds)
    place: str = ""  # where it archives, without credentials
    error: str = ""  # what keeps it from archiving; "" if nothing does
    # whether the archive is on another host, so that this worker leaves it alone
    elsewhere: bool = False
    damaged: bool = False  # whether the error is that the archive, or the log, is not as it was


class ArchiverReports(msgspec.Struct, frozen=True):
    """All reports that are written down."""

    parts: Mapping[int, ArchivedPart]  # what the archive has, by partition
    workers: Mapping[str, ArchiverReport]  # the reports of the workers that are alive, by worker id

    @property
    def working(self) -> bool:
        return any(not report.error and not report.elsewhere for report in self.workers.values())

    @property
    def error(self) -> str:
        """What keeps all workers from archiving; where one archives, what others found damaged.

        It is "" if nothing is damaged and one of them archives, or none is alive.
        """
        working = self.working
        reports = (report for report in self.workers.values() if report.damaged or not working)
        return "; ".join(dict.fromkeys(report.error for report in reports if report.error))

    @property
    def place(self) -> str:
        """Where the archive is; "" if no worker says so."""
        named = [report.place for report in self.workers.values() if report.place]
        return named[0] if named else ""


class _RetentionNote(msgspec.Struct, frozen=True):
    ages: dict[str, float]
    since: int


class SealReports:
    """The hash in Redis with the reports. Every method raises what redis-py raises."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._key = keys.archive

    def now_ms(self) -> int:
        return read_server_ms(self._redis)

    def write_report(self, worker: str, report: ArchiverReport) -> None:
        self._note(worker, report)

    def write_part(self, partition: int, part: ArchivedPart) -> None:
        self._note(lane_name(partition), part)

    def remove_worker(self, worker: str) -> None:
        self._redis.hdel(self._key, worker)

    def retention_since(self, ages: Mapping[str, float], now_ms: int) -> int:
        """Return since when the setting `retention` has these values; note a change in Redis."""
        body: Any = self._redis.hget(self._key, _RETENTION_FIELD)
        note = decode_or_none(body, _RetentionNote)
        if note is None or note.ages != dict(ages):
            self._note(_RETENTION_FIELD, _RetentionNote(dict(ages), now_ms))
            return now_ms
        return int(note.since)

    def read(self, now_ms: int, partitions: int) -> ArchiverReports:
        bodies: dict[bytes, bytes] = self._redis.hgetall(self._key)  # type: ignore[assignment]
        names = {lane_name(partition).encode(): partition for partition in range(partitions)}
        parts = {
            names[k]: decode_or_none(bodies[k], ArchivedPart) for k in names.keys() & bodies.keys()
        }
        reports = {k: body for k, body in bodies.items() if k not in names}
        return ArchiverReports(
            {p: part for p, part in parts.items() if part},
            {
                worker: report
                for worker, report in decode_readable(reports, ArchiverReport).items()
                if now_ms - report.at <= ALIVE_SECONDS * 1000
            },
        )

    def remove_silent_workers(self, now_ms: int, partitions: int) -> None:
        alive = self.read(now_ms, partitions).workers
        names = {lane_name(partition).encode() for partition in range(partitions)}
        known: list[bytes] = self._redis.hkeys(self._key)  # type: ignore[assignment]
        silent = [
            k
            for k in known
            if k not in names and not k.startswith(b"@") and k.decode() not in alive
        ]
        if silent:
            self._redis.hdel(self._key, *silent)

    def _note(self, field: str, body: Any) -> None:
        scripts.run(
            self._redis, scripts.write_fields(self._key, {field: msgspec.json.encode(body)})
        )
