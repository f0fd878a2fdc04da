"""Spools that dead processes of this host left: sent by whoever lives (G1)."""

from collections.abc import Callable

from redis import Redis

from memorybus.errors import SpoolCorrupt
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
            sender = _drained(spool, redis, settings, crash)
        except SpoolCorrupt as error:
            files.replace(spool, str(error)).close()
            continue
        except BaseException:
            spool.close()
            raise
        if sender.lagging:
            spool.close()
            break
        spool.discard()  # first: a crash before the next line only leaves a field in Redis
        sender.forget_producer()
        emptied += 1
    return emptied


def _drained(spool: Spool, redis: Redis, settings: Settings, crash: CrashPoint) -> Sender:
    sender = Sender(spool, redis, settings, crash)
    sender.resync()
    while sender.send():
        pass
    if sender.lagging:
        sender.catch_up()
    return sender
