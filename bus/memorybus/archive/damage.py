"""Damage of the archive that a reader goes on behind: told to whoever listens."""

from memorybus.errors import ArchiveError


class Heard(list[str]):
    """What one partition's reader told; each is passed on at once to who listens to all of them."""

    def __init__(self, everyone: list[str]) -> None:
        """Hear nothing yet."""
        super().__init__()
        self._everyone = everyone

    def append(self, told: str) -> None:
        """Hear it, and pass it on if it is new there."""
        super().append(told)
        if told not in self._everyone:
            self._everyone.append(told)


def heard(damage: list[str] | None) -> list[str] | None:
    """Return who listens to one partition's reader; None if nobody does."""
    return None if damage is None else Heard(damage)


def tell(error: ArchiveError, damage: list[str] | None) -> None:
    """Tell of damage, each once.

    Args:
        error: what is wrong.
        damage: who listens; None if nobody does.

    Raises:
        ArchiveError: nobody listens.
    """
    if damage is None:
        raise error
    if str(error) not in damage:
        damage.append(str(error))
