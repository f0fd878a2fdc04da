"""What a reader does with damage of the archive: collect messages and read on, or raise."""

from memorybus.errors import ArchiveError


class PartitionDamage(list[str]):
    """Messages about one partition's damage, each also added to the list of the whole history."""

    def __init__(self, everywhere: list[str]) -> None:
        """Start with no message."""
        super().__init__()
        self._everywhere = everywhere

    def append(self, message: str) -> None:
        """Add a message to this list, and to the list of the whole history if it lacks it."""
        super().append(message)
        if message not in self._everywhere:
            self._everywhere.append(message)


def partition_damage(damage: list[str] | None) -> list[str] | None:
    """Return a list for the damage of one partition; None if the caller wants an error instead."""
    return None if damage is None else PartitionDamage(damage)


def add_or_raise(error: ArchiveError, damage: list[str] | None) -> None:
    """Add the message of an error to a list, unless it is there; without a list, raise the error.

    Args:
        error: the damage that was found.
        damage: the list; None if the caller wants the error.

    Raises:
        ArchiveError: `damage` is None.
    """
    if damage is None:
        raise error
    if str(error) not in damage:
        damage.append(str(error))
