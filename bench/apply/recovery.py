"""kill -9 of a worker that holds an event in its handler: until another worker has applied it.

Two workers share the lanes. One event is published; whoever owns its lane calls the handler, which
never returns, and is killed then. The lane's lease has to end before the other may take it, so the
time lies between two thirds of the lease (renewed each third) and the lease, plus what taking over
costs. Kills come at random moments of the lease. The clock runs from the signal to the other's
call of the handler.
"""

import random
import statistics
import time

from calls import Call, Calls
from gauge import Figures, Size
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from pace import await_spread
from stage import Stage, Worker, wait_for

from providers import CALLS

KIND = "bench.providers:HoldProvider"
_SHORT_LEASE = 2.0
_SHORT_CALL = 1.5
_POLL_SECONDS = 0.002


def measure(size: Size) -> Figures:
    """Return seconds at the default lease and at a short one."""
    usual = [_recovery({}, number) for number in range(size.kills)]
    short = {"lease": _SHORT_LEASE, "call_timeout": _SHORT_CALL}
    shorter = [_recovery(short, number) for number in range(2 * size.kills)]
    return {
        "recovery_after_kill_s": statistics.median(usual),
        "recovery_after_kill_worst_s": max(usual),
        "recovery_after_kill_short_lease_s": statistics.median(shorter),
        "recovery_after_kill_short_lease_worst_s": max(shorter),
        "lease_s": Settings().lease,
        "short_lease_s": _SHORT_LEASE,
    }


def _recovery(overrides: dict[str, float], number: int) -> float:
    name = f"hold{number}"
    with Stage(**overrides) as stage:
        settings = stage.with_providers({name: KIND})
        calls = Calls(settings.provider_home(name) / CALLS)
        with stage.workers(settings, 2) as workers, MemoryBus.connect(settings) as bus:
            await_spread(stage, name, 2)
            time.sleep(random.Random(number).uniform(0.0, settings.lease / 3))
            bus.session(f"victim-{number}", warm=False).turn_completed("a", "b", ordinal=0)
            holder = _await_calls(calls, 1)[0]
            victim = _by_pid(workers, holder.pid)
            killed_at = time.monotonic_ns()
            victim.kill()
            taken = _await_calls(calls, 2)[1]
            if taken.pid == holder.pid:
                raise RuntimeError("the killed worker was not killed")
            stage.await_applied(name)
    return (taken.at - killed_at) / 1e9


def _await_calls(calls: Calls, count: int) -> list[Call]:
    wait_for(f"call {count} of the handler", lambda: len(calls.seen()) >= count, look=_POLL_SECONDS)
    return calls.seen()


def _by_pid(workers: list[Worker], pid: int) -> Worker:
    return next(worker for worker in workers if worker.pid == pid)
