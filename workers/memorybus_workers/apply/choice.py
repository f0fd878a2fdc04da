"""Chooses the applier of an instance by its delivery class and how many calls it allows at once."""

from collections.abc import Callable

from memorybus_providers.base import TransactionalProvider

from memorybus_workers.apply.applier import Applier, OpenInstance
from memorybus_workers.apply.bulk import BulkApplier, takes_turns_in_bulk
from memorybus_workers.apply.parallel import ParallelApplier
from memorybus_workers.apply.serial import SerialApplier
from memorybus_workers.apply.transactional import TransactionalApplier


def applier_for(instance: OpenInstance, wake: Callable[[], None]) -> Applier:
    """Return the applier of an instance; a ``blind`` provider gets no two calls at once (G4)."""
    provider = instance.provider
    if isinstance(provider, TransactionalProvider):
        return TransactionalApplier(instance, provider)
    if provider.capabilities.concurrent and provider.delivery in ("keyed", "lookup"):
        return ParallelApplier(instance, wake)
    if takes_turns_in_bulk(provider):
        return BulkApplier(instance)
    return SerialApplier(instance)
