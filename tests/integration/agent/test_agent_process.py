"""An agent's process: what it needs of the installation, and its first moments."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires

import pytest
from helpers.hermes.hermes_plugin import NOWHERE
from helpers.stories.scenario import environ
from memorybus.errors import install_command
from packaging.requirements import Requirement

_LIGHT = """
import importlib.abc, runpy, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""
"""Begins a program in which the named modules are not installed."""

_AGENT = """
from memorybus import MemoryBus
with MemoryBus.connect() as bus:
    session = bus.session("s", agent="gardener", user="ann")
    session.memory_written("add", "The ladder stands behind the shed.", store="user")
    session.turn_completed("Where is the ladder?", "Behind the shed.")
    session.prefetch("Where is the ladder?")
    assert bus.flush(timeout=30)
print("flushed")
"""


def plain_name(name: str) -> str:
    """Return a distribution's name in its one spelling."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(name: str, extras: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield a distribution and all that it needs with these extras."""
    yield plain_name(name)
    for line in requires(name) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if not marker or any(marker.evaluate({"extra": extra}) for extra in extras or {""}):
            yield from needed(requirement.name, frozenset(requirement.extras))


def left_out() -> set[str]:
    """Return the modules of all installed distributions that a light installation lacks."""
    light = set(needed("memorybus"))
    homes = packages_distributions()
    return {
        module
        for module, owners in homes.items()
        if not light & {plain_name(owner) for owner in owners} and module.isidentifier()
    }


def light_python(program: str, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a program where only an agent's dependencies are installed."""
    return subprocess.run(
        [sys.executable, "-P", "-c", _LIGHT.format(missing=left_out()) + program],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.timeout(90)
def test_an_agent_publishes_and_recalls_without_any_extra(redis_url, make_settings):
    """A light installation is all that an agent's process needs."""
    assert {"cyclopts", "rich", "structlog", "starlette", "Stemmer", "tomlkit"} <= left_out()
    shown = light_python(_AGENT, environ(make_settings(url=redis_url)))
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == "flushed\n"


def test_a_command_names_the_extra_that_it_needs(make_settings):
    """Where only an agent's part is installed, `memorybus` names what to install."""
    program = "sys.argv[1:] = ['status']\nrunpy.run_module('memorybus', run_name='__main__')"
    shown = light_python(program, environ(make_settings(url="redis://127.0.0.1:1")))
    assert shown.returncode == 1
    assert install_command("standard") in shown.stderr
    assert "Traceback" not in shown.stderr


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
