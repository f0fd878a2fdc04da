"""``memorybus doctor``: runs all checks, each with its remedy, and sends a canary.

The checks are independent: one that fails does not hide the others.
"""

from collections.abc import Iterator

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.health.finding import Check
from memorybus.health.findings import START_REMEDY
from memorybus.ids import NewId, new_id

from memorybus_console.operations.doctor import canary, host, passage
from memorybus_console.operations.doctor.log import check_redis
from memorybus_console.operations.doctor.serving import check_serving, run_guarded


def examine(
    settings: Settings, clock: Clock = SYSTEM, make_id: NewId = new_id, *, deep: bool = False
) -> Iterator[Check]:
    """Run every check in order, and yield each result as soon as it is known.

    Args:
        settings: see `Settings`.
        clock: time.
        make_id: makes the canary's word.
        deep: whether to write the canary's word into every provider, recall it, and remove it.
    """
    yield host.check_python()
    yield run_guarded("server binary", START_REMEDY, lambda: host.check_server_binary(settings))
    spool = host.check_spool(settings)
    yield spool
    # If nothing can be written here, all later checks fail for this reason and need its remedy.
    start = spool.fix or START_REMEDY
    yield run_guarded("other spools", start, lambda: host.check_other_spools(settings))
    yield run_guarded("privacy", start, lambda: host.check_privacy(settings))
    obstacle = yield from check_redis(settings, spool.fix)
    if obstacle is not None:
        yield _check_not_tried("worker", obstacle)
        yield _check_not_tried("canary", obstacle)
        return
    yield from check_serving(settings, clock)
    yield run_guarded("canary", start, lambda: _check_canary(settings, clock, make_id(), deep=deep))


def _check_canary(settings: Settings, clock: Clock, word: str, *, deep: bool) -> Check:
    if deep:
        return canary.check_recall(canary.send_and_recall(settings, clock, word))
    return passage.check_passage(passage.send_and_await(settings, clock, word))


def _check_not_tried(name: str, obstacle: Check) -> Check:
    found = f"not tried: see {obstacle.name}"
    return Check(name=name, ok=False, found=found, fix=obstacle.fix)
