"""How this Python starts a module of ours in a process of its own."""

import sys


def module_command(module: str, *words: str) -> list[str]:
    """Return the command line that runs `module` as a program.

    With ``-m`` alone Python would look for every module in the working directory first: a file
    ``redis.py`` there would run instead of the library, in whatever directory a person stands.
    """
    return [sys.executable, "-P", "-m", module, *words]
