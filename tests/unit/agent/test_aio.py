"""AsyncMemoryBus: the same methods as MemoryBus, typed, and no forgotten `await` unnoticed."""

import asyncio
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from memorybus import AsyncMemoryBus, MemoryBus, Session
from memorybus.agent.aio import AsyncSession

NO_REDIS_URL = "redis://127.0.0.1:1/0"
ROOT = Path(__file__).parents[3]

BEGINNING = """
from memorybus import AsyncMemoryBus, Receipt

async def live() -> None:
    async with AsyncMemoryBus.connect() as bus:
        session = await bus.session("s-1", user="ann", warm=False)
"""

RIGHT = """
        receipt: Receipt = await session.turn_completed("q", "a", ordinal=0, model="m")
        branch = await (await session.undo(receipt)).branch("s-2", title="again")
        text: str = await branch.prefetch()
        done: bool = await bus.flush("logged", timeout=1.0)
        root: str = branch.ref.root
"""

MISTAKES = {
    "a misspelt method": ("await session.turn_complete('q', 'a')", "attr-defined"),
    "a misspelt argument": ("await session.turn_completed('q', 'a', ordinl=0)", "call-arg"),
    "a misspelt detail": ("await session.turn_completed('q', 'a', model_='m')", "call-arg"),
    "a wrong type": ("await session.queue_prefetch(17)", "arg-type"),
    "a wrong level": ("await bus.flush('loged')", "arg-type"),
    "a misspelt argument of the bus": ("await bus.session('s', usr='ann')", "call-arg"),
    "a forgotten await": ("session.turn_completed('q', 'a')", "unused-coroutine"),
    "a forgotten await of a value": ("text: str = session.prefetch()", "assignment"),
}

WITHOUT_A_THREAD = {
    Session: {"event_id", "came_from"},
    MemoryBus: {"connect", "ask", "leave"},
}
"""What only computes, or is for those who hold the bus or the session itself (`sync`)."""


@pytest.fixture(name="said", scope="module")
def _said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return what mypy says of each snippet, all checked in one run, by the snippet's name."""
    folder = tmp_path_factory.mktemp("typed")
    names = {f"wrong_{number}": name for number, name in enumerate(MISTAKES)} | {"right": "right"}
    (folder / "right.py").write_text(BEGINNING + RIGHT)
    for file, (line, _) in zip(names, MISTAKES.values(), strict=False):
        (folder / f"{file}.py").write_text(f"{BEGINNING}        {line}\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    run = subprocess.run(
        [*command, *(str(folder / f"{file}.py") for file in names)],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert run.returncode == 1, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    return {name: [one for one in lines if f"{file}.py:" in one] for file, name in names.items()}


@pytest.mark.slow(reason="runs mypy")
def test_right_calls_have_types(said):
    """Every method of the asynchronous form has the arguments and the result of the other."""
    assert said["right"] == []


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.slow(reason="runs mypy")
def test_a_mistake_is_an_error_of_mypy(said, mistake):
    """A misspelt method or argument, a wrong type and a forgotten `await` are found by mypy."""
    _, code = MISTAKES[mistake]
    assert [one for one in said[mistake] if one.endswith(f"[{code}]")], said[mistake]


def test_a_forgotten_await_is_warned_of(make_settings):
    """Python warns of a call that nobody awaits, and names it: nothing was published."""

    async def live() -> int:
        async with AsyncMemoryBus.connect(make_settings(url=NO_REDIS_URL)) as bus:
            session = await bus.session("s", warm=False)
            before = bus.sync.last_sequence
            with pytest.warns(RuntimeWarning, match=r"turn_completed' was never awaited"):
                session.turn_completed("q", "a")
            return bus.sync.last_sequence - before

    assert asyncio.run(live()) == 0


@pytest.mark.parametrize(
    ("plain", "awaited"), [(Session, AsyncSession), (MemoryBus, AsyncMemoryBus)]
)
def test_nothing_is_missing(plain, awaited):
    """Every public method is there, with the same arguments, and is to be awaited."""
    methods = {
        name: method
        for name, method in inspect.getmembers(plain, inspect.isroutine)
        if not name.startswith("_") and name not in WITHOUT_A_THREAD[plain]
    }

    for name, method in methods.items():
        assert inspect.iscoroutinefunction(getattr(awaited, name)), name
        assert inspect.signature(getattr(awaited, name)) == inspect.signature(method), name
