"""Commands of ``memorybus`` run within the test: a Python for each costs more than it shows."""

import io
import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest import mock

from memorybus.surfaces.cli.app import main


class Ran(NamedTuple):
    """What a command did: its exit code, and its standard output and error in the order written."""

    exit_code: int
    output: str


def run_command(environ: Mapping[str, str], *words: str) -> Ran:
    """Run a command to its end, with the environment `environ` over this process's."""
    said = io.StringIO()
    with mock.patch.dict(os.environ, environ), redirect_stdout(said), redirect_stderr(said):
        code = main(list(words))
    return Ran(code, said.getvalue())
