"""A process that is told to end before it has begun: it ends, and has nothing to say."""

import os
import signal
import subprocess
import sys

import pytest
from helpers.hermes.hermes_plugin import NOWHERE
from helpers.stories.scenario import environ

COMMANDS = (
    *((("memorybus", "status"), module) for module in ("memorybus.errors", "rich.console")),
    *((("memorybus", "up"), module) for module in ("msgspec", "memorybus_console.views.output")),
    *((("memorybus_workers", "worker"), module) for module in ("argparse", "redis.exceptions")),
)
"""Commands, and a module of whose import each tells when it has only begun to load."""

_LINE = "import time:"

ENDED = (-signal.SIGINT, 130, 0, 1)
"""Exit codes: the first while it is loaded. The others on a busy machine: it listens already, or
`status` has found out by itself that no Redis is there."""


@pytest.mark.parametrize(("words", "module"), COMMANDS, ids=str)
def test_ctrl_c_while_modules_are_loaded_is_quiet(words, module, make_settings, short_dir):
    """Ctrl-C in a command's first moments ends it without a traceback."""
    command = [sys.executable, "-X", "importtime", "-P", "-m", *words]
    child = subprocess.Popen(
        command,
        env={**os.environ, **environ(make_settings(url=NOWHERE))},
        cwd=short_dir,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stderr is not None
        for line in child.stderr:  # one for each module, as soon as it is there
            if line.startswith(_LINE) and line.split("|")[-1].strip() == module:
                child.send_signal(signal.SIGINT)
                break
        said = "".join(line for line in child.stderr if not line.startswith(_LINE))
    assert "Traceback" not in said
    assert child.returncode in ENDED, said
