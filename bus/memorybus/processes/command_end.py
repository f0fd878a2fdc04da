"""How a command ended."""

import msgspec


class CommandEnd(msgspec.Struct, frozen=True):
    """The end of a command.

    Attributes:
        failure: why it failed, "" if it did not. What it quotes is the command's own: hostile text.
    """

    failure: str = ""
