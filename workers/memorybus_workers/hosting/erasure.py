"""What an owner has in some instances is erased, for a command that made it itself."""

from collections.abc import Iterator, Sequence

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.text.redact import describe_error
from memorybus_providers.base import MemoryProvider, RecallScope, Residue

from memorybus_workers.hosting.instances import make

_CANNOT = "it cannot erase: what was written stays there"


def erase(
    settings: Settings, names: Sequence[str], agent: str, user: str, clock: Clock
) -> Iterator[tuple[str, Residue]]:
    """Yield each instance with what is left in it."""
    for name in names:
        try:
            left = _erased(make(settings, name, clock), RecallScope(agent, user, ""))
        except Exception as error:  # the others are erased all the same
            left = Residue(0, (describe_error(error, settings.secrets),))
        yield name, left


def _erased(instance: MemoryProvider, scope: RecallScope) -> Residue:
    if not instance.capabilities.forgets:
        return Residue(0, (_CANNOT,))
    try:
        instance.open()
        return instance.forget(scope)
    finally:
        instance.shutdown()
