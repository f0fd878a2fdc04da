"""Erases an owner's memories in some instances, for a command that has written them itself."""

from collections.abc import Iterator, Sequence

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.text.redact import describe_error
from memorybus_providers.base import MemoryProvider, RecallScope, Residue

from memorybus_workers.hosting.instances import make_instance

_CANNOT = "it cannot erase: what was written stays there"


def erase(
    settings: Settings, names: Sequence[str], agent: str, user: str, clock: Clock
) -> Iterator[tuple[str, Residue]]:
    """Erase the owner's memories in each instance; yield its name with what remains in it."""
    for name in names:
        try:
            left = _erase_one(make_instance(settings, name, clock), RecallScope(agent, user, ""))
        except Exception as error:  # the other instances must be erased nevertheless
            left = Residue(0, (describe_error(error, settings.secrets),))
        yield name, left


def _erase_one(instance: MemoryProvider, scope: RecallScope) -> Residue:
    if not instance.capabilities.forgets:
        return Residue(0, (_CANNOT,))
    try:
        instance.open()
        return instance.forget(scope)
    finally:
        instance.shutdown()
