"""Who runs a command: what is noted beside the reason of an act."""

import getpass
import socket


def operator() -> str:
    """Return who runs the command, as ``user@host``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
