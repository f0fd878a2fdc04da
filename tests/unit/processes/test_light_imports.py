"""What a process of ours does not load."""

import json
import subprocess
import sys

import pytest

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
