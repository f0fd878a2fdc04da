"""Which applier a provider instance gets: by class, and by how many calls it allows at once."""

from collections.abc import Callable

from memorybus_providers.base import TransactionalProvider
from redis import Redis

from memorybus_workers.apply.applier import Applier
from memorybus_workers.apply.parallel import ParallelApplier
from memorybus_workers.apply.serial import SerialApplier
from memorybus_workers.apply.serving import Serving
from memorybus_workers.apply.transactional import TransactionalApplier


def applier_for(serving: Serving, redis: Redis, wake: Callable[[], None]) -> Applier:
    """Return the applier of an open instance.

    A ``blind`` provider is never called for several keys at once: each call under way would be one
    more that a crash may repeat (G4).

    Args:
        serving: the instance.
        redis: the log's Redis.
        wake: called from other threads when there is something to take in.
    """
    provider = serving.provider
    if isinstance(provider, TransactionalProvider):
        return TransactionalApplier(serving, provider)
    if provider.capabilities.concurrent and provider.delivery in ("keyed", "lookup"):
        return ParallelApplier(serving, redis, wake)
    return SerialApplier(serving)
