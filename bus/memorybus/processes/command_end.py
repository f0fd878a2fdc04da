"""The result of a command."""

import msgspec


class CommandEnd(msgspec.Struct, frozen=True):
    """The end of a command.

    Attributes:
        failure: why it failed, "" if it did not. It may quote the command's output: hostile text.
    """

    failure: str = ""
