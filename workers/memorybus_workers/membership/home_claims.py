"""Claims homes for local instances; those with a home elsewhere are left to the workers there."""

import logging

from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Home, Homes, local_home
from redis import Redis

from memorybus_workers.hosting.served import ServedInstances

_log = logging.getLogger("memorybus")
_LOOKS_BEFORE_CLAIM = 10
"""For how many looks a home that Redis lost is left to the worker that has the state."""


class HomeClaims:
    """Claims homes for a worker's local instances, and knows which of them live elsewhere."""

    def __init__(self, settings: Settings, redis: Redis, served: ServedInstances) -> None:
        self._settings = settings
        self._served = served
        self._homes = Homes(redis, Keys(settings.namespace))
        self._here: Home | None = None
        self._elsewhere: dict[str, Home] = {}
        self._lost_for: dict[str, int] = {}

    def is_elsewhere(self, name: str) -> bool:
        return name in self._elsewhere

    def claim(self) -> None:
        """Claim a home here for each local instance that has none; for the start of a worker."""
        if self._local_instances:
            self._here = local_home(self._settings)
            for name in self._local_instances:
                self._homes.claim(name, self._here)
        self.look()

    @property
    def _local_instances(self) -> list[str]:
        return [name for name, info in self._served.infos.items() if info.placement == "local"]

    def look(self) -> None:
        """Read again which homes are elsewhere, since an operator may move one.

        If Redis lost the homes, the worker that has the state must claim its home before any other
        worker does. So an instance whose home was elsewhere still counts as elsewhere for a while.
        """
        if self._here is None and self._local_instances:
            self._here = local_home(self._settings)
        if self._here is None:
            return
        kept = self._lost_lately()
        claimable = [name for name in self._local_instances if name not in kept]
        homes = self._homes.find_elsewhere(claimable, self._here)
        for name in homes.keys() - self._elsewhere.keys():
            _warn_elsewhere(name, homes[name])
        self._elsewhere = kept | homes

    def _lost_lately(self) -> dict[str, Home]:
        homes = self._homes.all() if self._elsewhere else {}
        lost = [name for name in self._elsewhere if name not in homes]
        self._lost_for = {name: self._lost_for.get(name, 0) + 1 for name in lost}
        return {
            name: self._elsewhere[name]
            for name in lost
            if self._lost_for[name] <= _LOOKS_BEFORE_CLAIM
        }


def _warn_elsewhere(name: str, home: Home) -> None:
    _log.warning(
        "provider %s has its home on %s (%s): this worker does not serve it; to bring it "
        "here, see `memorybus provider move %s`",
        name,
        home.host,
        home.path,
        name,
        extra={"provider": name},
    )
