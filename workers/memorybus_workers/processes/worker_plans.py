"""Plans what each worker process of a supervisor serves; pure functions.

All providers share the processes until one of them proves dangerous: its calls hang, so that only
the end of the process frees their threads, or one of its events killed a worker. From then on it
has its own process, whose end does not stop the lanes and recalls of others.
"""

from collections.abc import Collection, Sequence

import msgspec
from memorybus.processes.commands import module_command


class WorkerPlan(msgspec.Struct, frozen=True):
    """What one worker process serves.

    Attributes:
        name: a name for people; it stays the same when the process serves other instances.
        serves: the provider instances.
        jobs: how many recall processes each of them has.
    """

    name: str
    serves: tuple[str, ...]
    jobs: int


def spread_jobs(jobs: int, processes: int) -> list[int]:
    """Return how many recall processes each worker runs: `jobs` in all, spread evenly.

    So the death of one worker leaves the recall processes of the others at work.
    """
    each, more = divmod(jobs, processes)
    return [each + (number < more) for number in range(processes)]


def plan_workers(
    providers: Sequence[str], separated: Collection[str], processes: int, jobs: int
) -> list[WorkerPlan]:
    """Return `processes` plans for the providers that share, and one for each separated one."""
    sharing = tuple(name for name in providers if name not in separated)
    shared = [
        WorkerPlan(f"worker process {number} of {processes}", sharing, share)
        for number, share in enumerate(spread_jobs(jobs, processes), 1)
    ]
    own = [
        WorkerPlan(f"the worker process of {name}", (name,), jobs)
        for name in providers
        if name in separated
    ]
    return shared + own


def separate_providers(
    providers: Sequence[str], separated: frozenset[str], dangerous: Collection[str]
) -> frozenset[str]:
    """Return the providers that have their own process from now on.

    The last provider that shares stays where it is, because it is alone there. No provider comes
    back before the supervisor ends, because only a call shows whether a backend works again.

    Args:
        providers: all providers.
        separated: the providers that have their own process already.
        dangerous: the providers that have just proved dangerous.
    """
    for name in sorted(set(dangerous) & set(providers) - separated):
        if len(set(providers) - separated) > 1:
            separated |= {name}
    return separated


def worker_command(plan: WorkerPlan, providers: Sequence[str], mark: str) -> list[str]:
    """Return the command line of one worker.

    Args:
        plan: what the worker serves.
        providers: the providers of all workers, in the order of recall.
        mark: the end of its id.
    """
    words = module_command("memorybus_workers", "worker", "--with-parent", "--mark", mark)
    served = ("--providers", ",".join(plan.serves), "--among", ",".join(providers))
    return [*words, *served, "--jobs", str(plan.jobs)]
