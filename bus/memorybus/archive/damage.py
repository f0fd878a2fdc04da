"""Decides what a reader does when it meets damage in the archive: raise an error, or read on."""

from memorybus.errors import ArchiveError


class DamageHandler:
    """Raises damage as an error, or notes it as a message so that the rest can be read."""

    def __init__(self, messages: list[str] | None) -> None:
        self._messages = messages
        self.found = False  # whether damage was noted here

    def for_partition(self) -> "DamageHandler":
        """Return a handler that does the same, and whose `found` concerns one partition only."""
        return DamageHandler(self._messages)

    def add(self, error: ArchiveError) -> None:
        """Note the message of an error, unless the list has it already."""
        if self._messages is None:
            raise error
        self.found = True
        if str(error) not in self._messages:
            self._messages.append(str(error))


RAISE_DAMAGE = DamageHandler(None)
"""The handler for a caller that wants every damage raised as an error."""
