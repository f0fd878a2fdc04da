"""Damage of the archive that a reader goes on behind: told to whoever listens."""

from memorybus.errors import ArchiveError


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
