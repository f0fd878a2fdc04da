"""``memorybus diff``: shows what two instances of a provider would recall, side by side."""

from collections.abc import Sequence

import msgspec
from memorybus.jobs.inspect import InstanceInspector, TryRecall
from memorybus.recall.model import RecalledItem, RecallRequest


class RecallSide(msgspec.Struct, frozen=True):
    """What one instance recalls."""

    instance: str
    items: tuple[RecalledItem, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts alone, best first."""
        return tuple(item.text for item in self.items)


class RecallDifference(msgspec.Struct, frozen=True):
    """What two instances recall for one query."""

    query: str
    same: bool
    first: RecallSide
    second: RecallSide


def compare_recalls(
    inspector: InstanceInspector,
    instances: tuple[tuple[str, str], tuple[str, str]],
    wants: Sequence[RecallRequest],
) -> list[RecallDifference]:
    """Ask both instances every query, and return what they recall.

    Raises:
        InspectionFailed: an instance cannot be asked.
    """
    found = []
    for want in wants:
        first, second = (
            RecallSide(name, inspector.ask(of, name, TryRecall(want)).items)
            for of, name in instances
        )
        found.append(RecallDifference(want.query, first.texts == second.texts, first, second))
    return found
