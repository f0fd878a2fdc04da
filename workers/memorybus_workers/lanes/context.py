"""The objects that a worker gives to its threads: one of the worker, one of each instance."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.log.entry import LoggedEvent
from memorybus.query.ranges import WHOLE, Plan
from memorybus.registry.work import Mishap, WorkCounter
from memorybus.testing import CrashPoint, no_crash
from memorybus.tracing.spans import NO_SPAN, MaybeSpan, Tracing

from memorybus_workers.lanes.caution import IsolationProbe
from memorybus_workers.lanes.leases import Leases
from memorybus_workers.lanes.news import News


class WorkerContext(msgspec.Struct, frozen=True):
    """The objects that all threads of a worker share."""

    settings: Settings  # see `Settings`
    clock: Clock  # time
    rng: random.Random  # randomness for jitter
    leases: Leases  # the lanes that this worker owns
    isolation: IsolationProbe  # lets one event at a time be tried alone
    news: News  # announces to the runners which partitions have new entries
    tracing: Tracing  # makes spans, if this process has a provider of tracers
    # counts what is done for each provider
    work: WorkCounter = msgspec.field(default_factory=WorkCounter)


class Role(msgspec.Struct, frozen=True):
    """How an instance is made and run. If any of this changes, the instance is made again."""

    # the instance of the settings whose kind and options it has; agents know it by this name
    provider: str
    options: dict[str, Any] = {}  # the options that differ from these
    plan: Plan = WHOLE  # the part of the history that it gets; all other events count as done
    # Whether it answers agents. Of a provider and its copies exactly one does so.
    answering: bool = True


class InstanceContext(msgspec.Struct, frozen=True):
    """One provider instance in its worker."""

    worker: WorkerContext  # the objects that all threads of the worker share
    name: str  # the instance's name
    role: Role  # how it is run
    crash: CrashPoint = no_crash  # its crash points, for fault tests

    @property
    def concurrency(self) -> int:
        return self.worker.settings.concurrency

    def count_mishap(self, what: Mishap) -> None:
        """Count a mishap of the provider; those of a copy that answers nobody are not counted."""
        if self.role.answering:
            self.worker.work.count(self.role.provider, what)

    def apply_span(self, events: Sequence[LoggedEvent]) -> MaybeSpan:
        """Return the span in which events of one lane are applied; those of a copy have none."""
        if not (self.role.answering and events):
            return NO_SPAN
        traces = (event.envelope.trace for event in events)
        partition = events[0].position.partition
        return self.worker.tracing.apply(self.role.provider, partition, len(events), traces)

    def count_settled(self, events: Sequence[LoggedEvent], took: float, doubt: int) -> None:
        """Count events that were applied or parked together; not for a copy that answers nobody."""
        if self.role.answering and events:
            now = self.worker.clock.now_ms()
            self.worker.work.settled(self.role.provider, events, took, now, doubt)
