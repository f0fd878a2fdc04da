"""A process of ours is spared most of the garbage collector's work."""

import json
import subprocess
import sys

import pytest


def printed(program: str) -> str:
    """Run a program in a new Python; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("freeze_heap(); print(gc.get_freeze_count() > len(gc.get_objects()))", "True"),
        (
            (
                "a, *b = gc.get_threshold(); collect_seldom(); c, *d = gc.get_threshold(); "
                "print(gc.isenabled(), c >= 5 * a > 0, d == b)"
            ),
            "True True True",
        ),
    ],
)
def test_little_is_collected(program, shown):
    """What a process has when it begins is not looked at, and the rest seldom; never not at all."""
    names = "from memorybus.processes.light_imports import collect_seldom, freeze_heap"
    assert printed(f"import gc; {names}; {program}") == shown


def test_a_process_ends_without_a_last_collection():
    """A circle is left to the system; what was to be done at the end is done."""
    program = (
        "import atexit, gc; from memorybus.processes.light_imports import end_without_collecting\n"
        "class Circle:\n"
        "    def __del__(self): print('collected')\n"
        "atexit.register(print, 'done')\n"
        "{}\n"
        "circle = Circle(); circle.itself = circle; del circle"
    )
    assert printed(program.format("pass")) == "done\ncollected"
    assert printed(program.format("end_without_collecting()")) == "done"


LOADED = "; import json, sys; print(json.dumps([*sys.modules]))"


def loaded_by(program: str) -> set[str]:
    """Return the modules that a Python has loaded once it has run `program`."""
    told = subprocess.run(
        [sys.executable, "-c", program + LOADED], capture_output=True, text=True, check=True
    )
    return set(json.loads(told.stdout))


@pytest.mark.slow(reason="starts processes")
def test_redis_comes_without_opentelemetry():
    """A worker has redis-py without OpenTelemetry's SDK, and whoever wants that has it still."""
    program = "from memorybus.processes.light_imports import load_redis; load_redis()"
    assert loaded_by(program).isdisjoint({"opentelemetry", "opentelemetry.sdk"})
    assert {"redis", "opentelemetry.sdk.trace"} <= loaded_by(
        program + "; import redis, opentelemetry.sdk.trace"
    )


@pytest.mark.slow(reason="starts processes")
def test_what_a_host_has_loaded_stays():
    """Where OpenTelemetry is loaded already, nothing is hidden from redis-py."""
    program = (
        "import opentelemetry; from memorybus.processes.light_imports import load_redis; "
        "load_redis()"
    )
    assert "opentelemetry.metrics" in loaded_by(program)


@pytest.mark.slow(reason="starts processes")
def test_what_an_instance_would_be_is_told_without_redis():
    """Commands wait for a process that describes an instance: it loads no more than it needs."""
    loaded = loaded_by("from memorybus_workers.provider_commands import offers, trial")
    assert loaded.isdisjoint({"redis", "asyncio"})
