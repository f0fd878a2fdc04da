"""Bounds what an instance spends in a day in addition to its hooks, over all workers (G10)."""

from memorybus.errors import Unavailable
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from redis import Redis, RedisError


class SharedSpending:
    """Counts uses in Redis, for `ProviderConfig.spend`. May be called from several threads.

    Args:
        provider: the instance whose account is used; its copies use the same one.
    """

    def __init__(self, redis: Redis, keys: Keys, provider: str) -> None:
        self._redis, self._keys, self._provider = redis, keys, provider

    def __call__(self, what: str, a_day: int) -> bool:
        """Count one use; return whether the limit of this day (UTC) allowed it.

        Args:
            what: the kind of use, a plain word that the provider chooses.
            a_day: how many uses a day allows; 0 allows none.

        Raises:
            Unavailable: Redis is away.
        """
        if a_day <= 0:
            return False
        call = scripts.spend(self._keys.spent(self._provider, what), 0, a_day)
        try:
            return not scripts.run(self._redis, call).seconds
        except RedisError as error:
            raise Unavailable(f"what {self._provider} may spend is not known: {error}") from error
