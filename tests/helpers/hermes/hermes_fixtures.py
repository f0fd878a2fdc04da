"""Fixtures: worlds with the real Hermes in them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from helpers.hermes.hermes_agent import PYTHON
from helpers.hermes.hermes_world import World

MakeWorld = Callable[..., World]


@pytest.fixture(scope="session")
def _hermes_python() -> None:
    if not PYTHON.exists():
        pytest.skip("no Hermes Agent: run make hermes-venv")


@pytest.fixture(scope="module")
def hermes_world(_hermes_python: None) -> Iterator[World]:
    """One world with a worker, shared by the tests of a module.

    What is warm is waited for longer than a busy machine stands still.
    """
    made = World(prefetch_deadline=5.0)
    try:
        made.worker()
        yield made
    finally:
        made.close()


@pytest.fixture
def make_hermes_world(_hermes_python: None) -> Iterator[MakeWorld]:
    """Make worlds of this test's own; without a worker until asked."""
    made: list[World] = []

    def make(**settings: Any) -> World:
        made.append(World(**settings))
        return made[-1]

    yield make
    for one in made:
        one.close()
