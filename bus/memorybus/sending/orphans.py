"""Sends the spools that dead processes of this host left; any live process does this (G1)."""

from collections.abc import Callable

from redis import Redis

from memorybus import private
from memorybus.clock import Clock
from memorybus.errors import LogError, SpoolCorrupt, SpoolError
from memorybus.sending.context import SendingContext
from memorybus.sending.sender import Sender
from memorybus.spool.files import SpoolFiles
from memorybus.spool.note import SENT_SUFFIX
from memorybus.spool.outbox import Spool


def drain_orphans(
    files: SpoolFiles,
    redis: Redis,
    context: SendingContext,
    stopping: Callable[[], bool] = bool,
) -> int:
    """Send the spools that dead processes of this host left; return how many events were sent.

    A later call deletes a spool, once Redis has had all of it for `spool_keep` seconds: in a power
    cut Redis may lose its last second.

    Raises:
        LogUnavailable: Redis is away; the spools stay for the next call.
    """
    sent = 0
    for spool in files.adopt_all():
        try:
            sent += _send_orphan(spool, redis, context)
        except SpoolCorrupt as error:
            saved = files.set_aside(spool, str(error))
            if saved is not None:
                saved.close()  # the next call sends it
        except LogError:
            spool.close()
            raise
        except (SpoolError, OSError) as error:
            files.report(spool.path, f"{spool.path} waits: {error}")
            spool.close()
        if stopping():
            break
    return sent


def _send_orphan(spool: Spool, redis: Redis, context: SendingContext) -> int:
    sender = Sender(spool, redis, context)
    sender.resync()
    while sender.send():
        pass
    sender.catch_up()
    sent = sender.counts.sent
    keep = context.settings.spool_keep
    young = spool.size and _idle_for(spool, sent > 0, context.clock) < keep
    followed = sender.replication.is_replicated()
    sender.confirm()  # last: a Redis that lost its newest events is replicated too
    if sender.lagging or young or not followed:
        spool.close()
    else:
        spool.discard()  # first: a crash after this only leaves a field in Redis
        sender.forget_producer()
    return sent


def _idle_for(spool: Spool, sent: bool, clock: Clock) -> float:
    """Return for how many seconds nothing had to be sent, according to a file beside the spool."""
    mark = spool.path.with_suffix(SENT_SUFFIX)
    try:
        if sent or not mark.exists():
            private.write(mark, str(clock.now_ms()).encode())
        text = mark.read_text()
    except OSError:
        return 0.0  # the disk is full: the spool stays until there is room for the mark
    return (clock.now_ms() - int(text)) / 1000 if text.isdigit() else 0.0
