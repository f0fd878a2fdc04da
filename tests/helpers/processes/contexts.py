"""What a worker hands to its threads, for tests that run lanes without a worker."""

import random

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.query.ranges import WHOLE, Plan
from memorybus.testing import CrashPoint, no_crash
from memorybus.tracing.spans import Tracing
from memorybus_providers.base import MemoryProvider
from memorybus_workers.apply.applier import OpenInstance
from memorybus_workers.calls.breaker import Breaker
from memorybus_workers.calls.failing_events import FailingEvents
from memorybus_workers.calls.thread_activity import ThreadActivity
from memorybus_workers.lanes.caution import IsolationProbe
from memorybus_workers.lanes.context import InstanceContext, Role, WorkerContext
from memorybus_workers.lanes.leases import Leases
from memorybus_workers.lanes.news import News


def instance_context(
    settings: Settings,
    name: str,
    clock: Clock = SYSTEM,
    *,
    leases: Leases | None = None,
    plan: Plan = WHOLE,
    crash: CrashPoint = no_crash,
) -> InstanceContext:
    """Return the context of one instance in a worker of its own."""
    worker = WorkerContext(
        settings=settings,
        clock=clock,
        rng=random.Random(0),
        leases=leases or Leases(settings, SYSTEM, "w"),
        isolation=IsolationProbe(),
        news=News(),
        tracing=Tracing(settings.namespace),
    )
    return InstanceContext(worker, name, Role(name, plan=plan), crash)


def open_instance(
    context: InstanceContext, provider: MemoryProvider, attempts: int = 5
) -> OpenInstance:
    """Return an instance of which no call was made yet; the provider is open."""
    clock, rng = context.worker.clock, context.worker.rng
    failing_events = FailingEvents(clock, rng, attempts)
    return OpenInstance(context, provider, ThreadActivity(clock), failing_events, Breaker(rng))
