"""Makes one round of an archiver over all partitions, and does what is due."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec

from memorybus.archive.archive import Archive
from memorybus.archive.location import ARCHIVER
from memorybus.archive.objects.store import missing_extra_error
from memorybus.archive.seals import SealReports
from memorybus.config.redis_urls import redacted
from memorybus.errors import (
    ArchiveDamaged,
    ArchiveDiffers,
    ArchiveTaken,
    ArchiveUnavailable,
    LeaseLost,
)
from memorybus.log.inspection import LogInspector, PartitionState
from memorybus.log.stream import read_log_id
from memorybus.redis.keys import Keys, lane_name
from memorybus.registry.homes import Homes, local_home
from memorybus.text.display import count_text

from memorybus_workers.archiving.compactor import Compactor
from memorybus_workers.archiving.due import find_due
from memorybus_workers.archiving.retention import read_policy
from memorybus_workers.archiving.sealer import OwnedPartition, Sealer, SealingContext
from memorybus_workers.calls.retry import describe_failure, raise_unless_lane_error
from memorybus_workers.logs import RateLimitedWarning, bind_lane, bind_partition

_log = logging.getLogger("memorybus")
ROTATE_EVERY = 60.0  # seconds between two partitions that are examined for content that has expired


def summarize_errors(errors: Mapping[int, str]) -> str:
    """Return the errors of partitions in a line: the first, and how many more there are."""
    texts = list(dict.fromkeys(errors.values()))
    if len(texts) < 2:
        return "".join(texts)
    more = count_text(len(texts) - 1, "more partition")
    return f"{texts[0]}; and {more}: memorybus archive run"


class ArchivingRound:
    """Looks at all partitions and does what is due. Belongs to one thread."""

    def __init__(self, context: SealingContext, patience: float) -> None:
        self.place = ""  # where the archive is, without credentials; "" before the first look
        self.elsewhere = False  # whether it lies on another host
        self.now_ms = 0  # the server's wall time at the last look
        # why partitions cannot be sealed: the archive or the log has changed unexpectedly
        self.errors: dict[int, str] = {}
        # other reasons at the last look, mostly files that cannot be reached
        self.unreached: dict[int, str] = {}
        # partitions that another archiver was at work on when we last tried
        self.busy: set[int] = set()
        self._context = context
        self._patience = patience
        self._keys = Keys(context.settings.namespace)
        ages = (round(context.settings.seal_after * 1000),)
        self._inspector = LogInspector(context.redis, context.settings, ages)
        self._homes = Homes(context.redis, self._keys)
        self._sealer = Sealer(context)
        self._reports = SealReports(context.redis, self._keys)
        self._compactor = Compactor(context.settings)
        self._failing = RateLimitedWarning("a partition is not archived: %s", context.clock)
        self._archive: tuple[str, Archive] | None = None
        self._seen: dict[int, int] = {}
        self._due_since: float | None = None
        self._keen = False
        self._rotate_at = context.clock.monotonic() + ROTATE_EVERY
        self._turn = 0

    @property
    def all_errors(self) -> Mapping[int, str]:
        """All reasons why partitions cannot be sealed, by partition."""
        return self.errors | self.unreached

    def run(self, *, force: bool = False) -> int:
        """Read the partitions once and do what is due; return how many events were sealed."""
        self.unreached = {}
        opened = self._open_archive()
        states = self._inspector.read_partitions()
        self.now_ms = max((state.now_ms for state in states.values()), default=self.now_ms)
        if opened is None:
            return 0
        _check_libraries()
        due = states if force else self._find_due(opened[1], states)
        todo = due if force or self._is_our_turn(due) else {}
        todo = self._next_in_rotation(states) | todo
        if not todo or not self._is_at_home():
            return 0
        try:
            return self._work_on_all(*opened, todo, force=force)
        finally:
            opened[1].close()

    def _find_due(
        self, archive: Archive, states: Mapping[int, PartitionState]
    ) -> dict[int, PartitionState]:
        due = {}
        for partition, state in states.items():
            with self._contain_errors(archive, partition):
                if self._is_due(archive, partition, state):
                    due[partition] = state
        return due

    def _work_on_all(
        self, log_id: str, archive: Archive, todo: Mapping[int, PartitionState], *, force: bool
    ) -> int:
        sealed = 0
        for partition, state in todo.items():
            with self._contain_errors(archive, partition):
                sealed += self._work_on(log_id, archive, partition, state, force=force)
        return sealed

    @contextmanager
    def _contain_errors(self, archive: Archive, partition: int) -> Iterator[None]:
        """Note an error that keeps one partition from being sealed, and let the others go on."""
        bind_partition(partition)
        try:
            yield
        except ArchiveUnavailable as error:
            archive.objects.list("")
            self.unreached[partition] = str(error)
        except Exception as error:
            why = raise_unless_lane_error(error, redacted(self._context.settings.redis_url))
            self.unreached[partition] = describe_failure(why)
            self._failing.warn(f"{lane_name(partition)}: {describe_failure(why)}", why)

    def _open_archive(self) -> tuple[str, Archive] | None:
        log_id = read_log_id(self._context.redis, self._keys)
        if log_id is None:
            return None
        if self._archive is None or self._archive[0] != log_id:
            context = self._context
            archive = Archive.from_settings(
                context.settings, log_id, clock=context.clock, crash=context.crash
            )
            self._archive, self._seen = (log_id, archive), {}
            self.place = archive.where
        return self._archive

    def _is_due(self, archive: Archive, partition: int, state: PartitionState) -> bool:
        """Return whether there is something to do, even if Redis knows less than the archive."""
        sealed = state.view.sealed
        known = self._seen.get(partition)
        if known is None or sealed < known:
            try:
                end = archive.end(partition)
            except ArchiveDamaged:
                return True  # the work on it reports why
            if end is not None and end.n > sealed:
                return True
        self._seen[partition] = sealed
        return bool(find_due(state, self._context.settings))

    def _is_our_turn(self, due: Mapping[int, PartitionState]) -> bool:
        """Return whether to act now: the worker that archived last does so at once, others wait."""
        if not due:
            self._due_since = None
            return False
        now = self._context.clock.monotonic()
        self._due_since = now if self._due_since is None else self._due_since
        return self._keen or now - self._due_since >= self._patience

    def _next_in_rotation(self, states: Mapping[int, PartitionState]) -> dict[int, PartitionState]:
        """Return the partition whose segments are examined now; mostly there is none."""
        now = self._context.clock.monotonic()
        if now < self._rotate_at:
            return {}
        self._rotate_at = now + ROTATE_EVERY
        self._turn = (self._turn + 1) % self._context.settings.partitions
        state = states.get(self._turn)
        return {self._turn: state} if state is not None and state.view.sealed else {}

    def _is_at_home(self) -> bool:
        """Whether this worker may write the archive: it is shared, or lies in our data_dir."""
        if not self._context.settings.archive:
            ours = local_home(self._context.settings)
            self.elsewhere = self._homes.claim(ARCHIVER, ours) != ours
        return not self.elsewhere

    def _work_on(
        self, log_id: str, archive: Archive, partition: int, state: PartitionState, *, force: bool
    ) -> int:
        owned = self._sealer.acquire(archive, log_id, partition)
        self._keen = owned is not None
        if owned is None:
            self.busy.add(partition)
            return 0
        self.busy.discard(partition)
        self.errors.pop(partition, None)
        try:
            return self._work_on_owned(bind_lane(owned), state, force=force)
        except (LeaseLost, ArchiveTaken) as error:
            _log.info("partition %s has another archiver: %s", lane_name(partition), error)
        except (ArchiveDamaged, ArchiveDiffers) as error:
            self.errors[partition] = str(error)
        finally:
            self._sealer.release(owned)
        return 0

    def _work_on_owned(self, owned: OwnedPartition, state: PartitionState, *, force: bool) -> int:
        settings = self._context.settings
        policy = read_policy(owned.archive, self._reports, settings, state.now_ms)
        sealed = self._sealer.work(owned, state, policy, force=force)
        self._compactor.work(owned.archive, owned.partition, policy, state.now_ms)
        self._sealer.write_counts(owned)
        self._seen.pop(owned.partition, None)
        return sealed


def _check_libraries() -> None:
    if find_spec("pyarrow") is None:
        raise missing_extra_error(ImportError(name="pyarrow"))
