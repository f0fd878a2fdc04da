"""What lies in the directory where a command is started is data: none of it is run."""

import sys
from pathlib import Path

import pytest
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import environ
from memorybus.agent.client import MemoryBus

MARKED = ("redis", "rq", "json", "msgspec", "memorybus", "memorybus_workers", "notes")
COMMAND = Path(sys.executable).with_name("memorybus")


@pytest.fixture(name="trap")
def _trap(tmp_path: Path) -> Path:
    """Return a directory whose files have the names of libraries, and say that they were run."""
    place = tmp_path / "trap"
    place.mkdir()
    for name in MARKED:
        text = f"import pathlib\npathlib.Path({str(place / 'ran')!r}).touch()\nraise SystemExit(9)"
        (place / f"{name}.py").write_text(text)
    return place


@pytest.mark.parametrize(
    "words", [("worker",), ("worker", "--processes", "2"), ("up",)], ids=" ".join
)
def test_nothing_in_the_working_directory_is_run(redis_client, make_settings, spawn, trap, words):
    """A file `redis.py` where a worker is started runs in none of its processes."""
    table = {"answers": {"kind": "helpers.providers.recalls:Answering"}}
    settings = make_settings(providers=("answers",), provider=table)
    child = spawn(COMMAND, *words, "--json", env=environ(settings), cwd=trap)
    child.wait_output('"ready"')
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s")
        session.queue_prefetch("when does the ferry leave?")
        wait_until(lambda: "an answer to when" in session.prefetch(), "a recall process answers")
    assert child.terminate() == 0, child.output()
    assert not (trap / "ran").exists()


def test_a_provider_of_the_working_directory_is_not_found(redis_client, make_settings, spawn, trap):
    """A provider's module is found where Python is told to look; the refusal says how to."""
    kind = {"mine": {"kind": "notes:NotesProvider"}}
    settings = make_settings(providers=("mine",), provider=kind)
    child = spawn(COMMAND, "worker", env=environ(settings), cwd=trap)
    assert child.wait() == 2, child.output()
    assert "PYTHONPATH" in child.output()
    assert not (trap / "ran").exists()
