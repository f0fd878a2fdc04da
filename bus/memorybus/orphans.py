"""Spools that dead processes of this host left: sent by whoever lives (G1)."""

from collections.abc import Callable

from redis import Redis

from memorybus.sender import Sender
from memorybus.settings import Settings
from memorybus.spool import Spool
from memorybus.spool_files import SpoolFiles
from memorybus.testing import CrashPoint, no_crash


def drain_orphans(
    files: SpoolFiles,
    redis: Redis,
    settings: Settings,
    crash: CrashPoint = no_crash,
    stopping: Callable[[], bool] = bool,
) -> int:
    """Send the spools that dead processes of this host left; return how many were emptied.

    Raises:
        LogUnavailable: Redis is away; the spools stay, and are free for the next.
    """
    emptied = 0
    while not stopping() and (spool := files.adopt_one()) is not None:
        try:
            done = _drain(spool, redis, settings, crash)
        except BaseException:
            spool.close()
            raise
        if not done:
            spool.close()
            break
        spool.discard()
        emptied += 1
    return emptied


def _drain(spool: Spool, redis: Redis, settings: Settings, crash: CrashPoint) -> bool:
    sender = Sender(spool, redis, settings, crash)
    sender.resync()
    while sender.send():
        pass
    if sender.lagging and sender.catch_up():
        return False
    sender.forget_producer()
    return True
