"""Hooks with a time limit of their own: a compression that is saved at leisure."""

from pathlib import Path
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.processes import Child
from helpers.processes.stalls import MARGIN
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import home, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters

KIND = "registry:contract.registry_example:Patient"
CALL = 1.0
"""Seconds of `call_timeout`; the lease is twice that."""


pytestmark = pytest.mark.usefixtures("redis_client")


@pytest.fixture(name="busy")
def _busy(tmp_path: Path) -> Path:
    """Return the file whose presence keeps a compression from being saved."""
    busy = tmp_path / "busy"
    busy.touch()
    return busy


def patient(make_settings: MakeSettings, busy: Path, **options: Any) -> Settings:
    """Return settings with one provider that saves while `busy` is there."""
    table = {"kind": KIND, "diary": "{home}/diary", "busy": str(busy), **options}
    timings: Any = {"call_timeout": CALL, "lease": 2 * CALL, "partitions": 1}
    return make_settings(providers=("rec",), provider={"rec": table}, **timings)


def diary(settings: Settings) -> list[str]:
    """Return what the provider has noted."""
    file = home(settings) / "diary"
    return file.read_text().splitlines() if file.exists() else []


def compress(settings: Settings) -> None:
    """Publish a compression and a turn behind it."""
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.compressing([{"role": "user", "content": "tea"}], compression_count=3)
        session.turn_completed("after", "ok", ordinal=0)
        assert bus.flush()


def is_abandoned(running: Child) -> bool:
    """Say whether a worker has given a call up."""
    return "is abandoned" in running.output()


def test_a_compression_has_more_time_than_other_calls(redis_client, make_settings, spawn, busy):
    """G5, G6: on_compress outlives call_timeout and lease, once, and its key goes on behind it."""
    settings = patient(make_settings, busy)
    running = worker(spawn, settings)
    compress(settings)
    wait_until(lambda: diary(settings), "the compression has begun", 20)
    over = SYSTEM.monotonic() + 3 * CALL
    wait_until(lambda: SYSTEM.monotonic() > over, "other calls would be abandoned")
    busy.unlink()
    wait_applied(redis_client, settings)

    assert diary(settings) == ["begins 3 with ['busy', 'diary']", "saved 3", "after"]
    assert not is_abandoned(running)
    assert list(DeadLetters(settings).letters(["rec"])) == []


def test_a_compression_is_given_up_after_its_own_time(make_settings, spawn, busy):
    """G9, G10: `compress_timeout` bounds it; what was given up is waited for, then sent again."""
    settings = patient(make_settings, busy, compress_timeout=3 * CALL)
    running = worker(spawn, settings)
    began = SYSTEM.monotonic()
    compress(settings)
    wait_until(lambda: is_abandoned(running), "it is given up", 3 * CALL + 20 + MARGIN)
    assert SYSTEM.monotonic() - began >= 3 * CALL
    busy.unlink()
    wait_until(lambda: "after" in diary(settings), "its key goes on", 30)
    assert diary(settings).count("saved 3") in (1, 2)  # blind: one more for a call not answered
