"""``memorybus tools``: the tools of real providers, listed and called by hand."""

from collections.abc import Iterator

import pytest
from helpers.stories.world import World, standing_world

WRITES = {
    "memory_search": False,
    "memory_probe": False,
    "memory_related": False,
    "memory_reason": False,
    "memory_contradict": False,
    "memory_list": False,
    "session_search": False,
    "memory_add": True,
    "memory_correct": True,
    "memory_feedback": True,
    "memory_pin": True,
    "memory_forget": True,
}


@pytest.fixture(name="world", scope="module")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with standing_world(tmp_path_factory.mktemp("logs"), providers=("holographic",)) as world:
        world.worker()
        yield world


def test_tools_are_listed_and_called(world):
    """What one call writes the next one finds, within the person's scope and no other's."""
    listed = world.result("tools", "ls")
    assert {row["name"]: row["writes"] for row in listed} == WRITES

    fact = '{"content": "The brass key is under the pot.", "tags": ["key"]}'
    added = world.result("tools", "call", "memory_add", "--json-args", fact, "--user", "ana")
    asked = ("call", "memory_search", "--arg", "query=brass key", "--arg", "limit=3", "--user")
    found = world.result("tools", *asked, "ana")
    other = world.result("tools", *asked, "bob")

    assert added["ok"]
    assert [one["text"] for one in found["results"]] == ["The brass key is under the pot."]
    assert other["results"] == []


def test_a_call_that_fails_is_told_with_its_exit_code(world):
    """An unknown tool and wrong arguments are results that say so: exit code 1."""
    unknown = world.result("tools", "call", "memory_burn", code=1)
    wrong = world.result("tools", "call", "memory_search", "--arg", "limit=many", code=1)
    assert unknown["error"] == "memory has no tool 'memory_burn'"
    assert "memory_search" in wrong["error"]


def test_tools_are_shown_to_people(world, make_world):
    """A table says what reads and what writes; without a worker it says what to start."""
    nobody = make_world(providers=("holographic",))
    assert nobody.result("tools", "ls") == []
    none = nobody.run("tools", "ls")
    assert none.returncode == 0
    assert "memorybus up" in none.stderr
    listed = world.run("tools", "ls")
    assert listed.returncode == 0
    assert {"memory_search", "reads", "writes"} <= set(listed.stdout.split())
