"""Keeps this host's note of the offered tools fresh, from the roster, in the background."""

import logging

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.ids import NewId
from memorybus.redis.keys import Keys
from memorybus.registry import tools

_log = logging.getLogger("memorybus")

LOOK_EVERY = 60.0
"""Seconds between looks at what workers declare."""


def declared_now(settings: Settings) -> dict[str, tools.Declared]:
    """Return what the registered provider instances declare, in the order of recall.

    Raises:
        LogUnavailable: Redis is away.
        ForeignKey: a key is not ours.
    """
    from memorybus.redis.connect import connect_redis
    from memorybus.registry.roster import Roster

    redis = connect_redis(settings)
    try:
        return Roster(redis, Keys(settings.namespace)).tools()
    finally:
        redis.close()


class ToolsSeen:
    """Looks now and then what workers declare. Belongs to one background thread.

    Args:
        settings: see `Settings`.
        clock: time.
        new_id: names of files in the making.
    """

    def __init__(self, settings: Settings, clock: Clock, new_id: NewId) -> None:
        """Have seen nothing yet."""
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._look_at = 0.0

    def look(self) -> None:
        """Note what is declared now, if it is time to look again.

        With nothing declared the note stays: no worker has ever run, or Redis has lost its memory,
        and a moment later the workers register anew.

        Raises:
            LogUnavailable, ForeignKey: see `declared_now`.
        """
        now = self._clock.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY
        declared = declared_now(self._settings)
        if declared:
            self._note(declared)

    def _note(self, declared: dict[str, tools.Declared]) -> None:
        try:
            tools.write_file(self._settings.tools_path, declared, self._new_id())
        except OSError as error:
            _log.warning("the tools of memory are not noted: %s", error)
