"""`hermes memorybus …`. Hermes runs this file at every start, so it imports nothing of the bus."""

import os
import sys
from typing import Any

_COMMANDS = {
    "status": "plugin, spool, lag and last error; exit code 1 if something is wrong",
    "reconcile": "bring into the log what Hermes has stored and the bus never got",
    "doctor": "check everything, to the point of publishing a canary",
    "up": "run Redis and workers with this home's settings; Ctrl-C stops them",
}


def register_cli(subparser: Any) -> None:
    """Add the commands to `hermes memorybus`."""
    commands = subparser.add_subparsers(dest="memorybus_action")
    for name, text in _COMMANDS.items():
        parser = commands.add_parser(name, help=text, add_help=False, prefix_chars="\0")
        parser.add_argument("words", nargs="*", help=f"as for the command `memorybus … {name}`")


def memorybus_command(args: Any) -> None:
    """Become the command line of the package, in Hermes's home, whose settings file counts."""
    from hermes_constants import (  # type: ignore[import-not-found,unused-ignore]
        get_hermes_home,
    )

    home = str(get_hermes_home())
    action = getattr(args, "memorybus_action", None) or "status"
    command = [action] if action in ("doctor", "up") else ["hermes", action, "--home", home]
    if action == "status":
        command += ["--python", sys.executable]
    sys.stdout.flush()
    os.chdir(home)
    words = [sys.executable, "-P", "-m", "memorybus", *command, *getattr(args, "words", ())]
    os.execv(sys.executable, words)  # noqa: S606  our own interpreter and module
