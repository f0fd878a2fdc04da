"""Damage of the archive that a reader reads past: collected in a list, or raised."""

from memorybus.errors import ArchiveError


class PartitionDamage(list[str]):
    """The damage in one partition; each message is added to the list of the whole history, too."""

    def __init__(self, everywhere: list[str]) -> None:
        """Begin without any."""
        super().__init__()
        self._everywhere = everywhere

    def append(self, message: str) -> None:
        """Add a message here, and to the other list if that lacks it."""
        super().append(message)
        if message not in self._everywhere:
            self._everywhere.append(message)


def of_partition(damage: list[str] | None) -> list[str] | None:
    """Return a list for the damage of one partition; None if damage is an error to the caller."""
    return None if damage is None else PartitionDamage(damage)


def tell(error: ArchiveError, damage: list[str] | None) -> None:
    """Add an error to a list of damage, each once.

    Args:
        error: what is wrong.
        damage: the list; None if the caller wants the error.

    Raises:
        ArchiveError: there is no list.
    """
    if damage is None:
        raise error
    if str(error) not in damage:
        damage.append(str(error))
