"""What each worker process of a supervisor serves; pure functions.

All providers share the processes until one of them proves dangerous: its calls hang, so that only
the end of the process frees their threads, or one of its events killed a worker. From then on it
has a process of its own, whose end stops nobody else's lanes and recalls.
"""

from collections.abc import Collection, Sequence

import msgspec
from memorybus.processes.commands import module_command


class WorkerPlan(msgspec.Struct, frozen=True):
    """What one worker process serves.

    Attributes:
        name: for people; it stays the same when the process serves other instances.
        serves: the provider instances.
        jobs: recall processes for each of them.
    """

    name: str
    serves: tuple[str, ...]
    jobs: int


def spread_jobs(jobs: int, processes: int) -> list[int]:
    """Return how many recall processes each worker runs: `jobs` in all, spread evenly.

    Spread, because the death of one worker then leaves the others' recall processes at work.
    """
    each, more = divmod(jobs, processes)
    return [each + (number < more) for number in range(processes)]


def plan_workers(
    providers: Sequence[str], apart: Collection[str], processes: int, jobs: int
) -> list[WorkerPlan]:
    """Return the plans: `processes` for those that share, and one for each that is set apart."""
    together = tuple(name for name in providers if name not in apart)
    shared = [
        WorkerPlan(f"worker process {number} of {processes}", together, share)
        for number, share in enumerate(spread_jobs(jobs, processes), 1)
    ]
    own = [
        WorkerPlan(f"the worker process of {name}", (name,), jobs)
        for name in providers
        if name in apart
    ]
    return shared + own


def set_apart(
    providers: Sequence[str], apart: frozenset[str], shown: Collection[str]
) -> frozenset[str]:
    """Return the providers that have a process of their own from now on.

    The last one that shares stays where it is, since it is alone there. None comes back before the
    supervisor ends, because only a call shows whether a backend is mended.

    Args:
        providers: all of them.
        apart: those that have one already.
        shown: those that have just ended their process.
    """
    for name in sorted(set(shown) & set(providers) - apart):
        if len(set(providers) - apart) > 1:
            apart |= {name}
    return apart


def worker_command(plan: WorkerPlan, providers: Sequence[str], mark: str) -> list[str]:
    """Return the command line of one worker.

    Args:
        plan: what it serves.
        providers: those of all workers, in the order of recall.
        mark: how its id ends.
    """
    words = module_command("memorybus_workers", "worker", "--with-parent", "--mark", mark)
    served = ("--providers", ",".join(plan.serves), "--among", ",".join(providers))
    return [*words, *served, "--jobs", str(plan.jobs)]
