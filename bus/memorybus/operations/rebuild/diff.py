"""``memorybus diff`` shows what two instances of a provider would recall, side by side."""

from collections.abc import Sequence

import msgspec

from memorybus.errors import ConfigError
from memorybus.jobs.inspect import InstanceInspector
from memorybus.operations.copies.generations import is_dropped
from memorybus.recall.model import RecalledItem, Want
from memorybus.registry.instances import Instance, InstancesView


class Side(msgspec.Struct, frozen=True):
    """What one instance recalls."""

    instance: str
    items: tuple[RecalledItem, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts alone, best first."""
        return tuple(one.text for one in self.items)


class RecallDifference(msgspec.Struct, frozen=True):
    """What two instances recall for one query.

    Attributes:
        query: the question.
        same: whether both recall the same texts in the same order.
        first: the one side.
        second: the other.
    """

    query: str
    same: bool
    first: Side
    second: Side


def provider_of(names: Sequence[str], sight: InstancesView, configured: Sequence[str]) -> str:
    """Return the provider that instances are of; pure.

    Raises:
        ConfigError: one is none, or was dropped, or they are of several.
    """
    every = {name: Instance(name=name, provider=name) for name in configured} | dict(sight.all)
    known = {name: one for name, one in every.items() if not is_dropped(name, sight)}
    for name in names:
        if name in every and name not in known:
            raise ConfigError(f"{name} was dropped; there are: {', '.join(known)}")
        if name not in known:
            raise ConfigError(f"no instance is called {name!r}; there are: {', '.join(known)}")
    providers = {known[name].provider for name in names}
    if len(providers) != 1:
        raise ConfigError(f"{' and '.join(names)} are instances of different providers")
    return providers.pop()


def differing(
    inspector: InstanceInspector, provider: str, names: tuple[str, str], wants: Sequence[Want]
) -> list[RecallDifference]:
    """Ask both instances every query, and return what they recall.

    Raises:
        InspectionFailed: one cannot be asked.
    """
    found = []
    for want in wants:
        one, two = (Side(name, inspector.recall(provider, name, want)) for name in names)
        found.append(RecallDifference(want.query, one.texts == two.texts, one, two))
    return found
