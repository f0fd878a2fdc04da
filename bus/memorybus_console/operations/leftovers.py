"""Erases what an erasure leaves in the files of this host's agents.

What cannot be rewritten is returned in words that say what to do about it.
"""

from collections.abc import Collection
from contextlib import closing

from memorybus.agent.session_store import HostSessions
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import SpoolError
from memorybus.events import Scope
from memorybus.ids import new_id, new_rng
from memorybus.outbox.files import SpoolFiles
from memorybus.outbox.rules import SendingContext
from memorybus.outbox.sender import drain_orphans
from memorybus.redis.connect import connect_redis
from memorybus.testing import crash_points

_LOOK_EVERY = 0.1  # seconds between two looks whether something is done

_MORE = 1.0  # seconds beyond `spool_keep` in which a spool is deleted


def erase_host_notes(settings: Settings, sessions: Collection[tuple[Scope, str]]) -> list[str]:
    """Erase what this host notes of sessions, and the system prompts that it has shown anybody.

    Any prompt may contain what somebody's session wrote to the agent's store. A session whose
    prompt is erased is shown what is remembered now.
    """
    if not settings.sessions_path.exists():
        return []
    try:
        with closing(HostSessions(settings.sessions_path)) as notes:
            notes.forget(sessions)
    except SpoolError as error:
        return [f"system prompts that this host has noted ({error}): run this again"]
    return []


def send_spools(settings: Settings, clock: Clock) -> None:
    """Send the spools that ended processes of this host left; delete those that are done."""
    crash = crash_points(settings.crash_at)
    context = SendingContext(settings, clock, new_rng(), new_id, crash)
    with closing(connect_redis(settings)) as redis:
        spools = SpoolFiles.from_settings(settings, new_id, clock)
        drain_orphans(spools, redis, context)


def erase_spools(settings: Settings, wait: float, clock: Clock) -> list[str]:
    """Delete the spools of ended processes, once Redis has had their events long enough.

    A spool that is locked may be a running agent's, or a worker may be sending it just now: both
    are waited for.
    """
    until = clock.monotonic() + min(wait, settings.spool_keep + _MORE)
    while (spools := sorted(settings.spool_dir.glob("*.db"))) and clock.monotonic() < until:
        clock.sleep(_LOOK_EVERY)
        send_spools(settings, clock)
    return [
        f"{path}, with what its process sent in the last {settings.spool_keep:g} s, and parts of "
        "what it sent before: run this again when that process has ended"
        for path in spools
    ]
