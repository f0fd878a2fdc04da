"""The real holographic plugin, hosted: the same store as inside Hermes, and other real loading."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.hermes.hermes_agent import PYTHON
from helpers.hosted.hosted import asking, calls, context, ended, opened, say
from helpers.hosted.hosted_steps import facts, play, play_inside
from memorybus.events import SessionSwitched
from memorybus_providers.base import RecallScope

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Hermes Agent: run make hermes-venv"),
]

_CONFIG = "plugins:\n  hermes-memory-store:\n    auto_extract: true\n"


@pytest.fixture
def place(short_dir: Path) -> Iterator[Path]:
    """Return a directory whose children end with the test."""
    with ended([short_dir]):
        yield short_dir


def configured(home: Path) -> Path:
    """Make a HERMES_HOME in which holographic extracts facts at a session's end."""
    home.mkdir(parents=True)
    (home / "config.yaml").write_text(_CONFIG)
    return home


def test_the_store_is_the_same_as_inside_hermes(place):
    """Facts, categories, trust and entities are what Hermes's own MemoryManager leaves."""
    theirs, ours = configured(place / "theirs"), configured(place / "ours")
    recalled = play_inside(PYTHON, theirs, "holographic", "coffee")
    provider = opened("holographic", place / "home", PYTHON, hermes_home=str(ours))
    play(provider)
    found = [one.text for one in provider.prefetch("coffee", asking())]
    block = provider.system_prompt_block(RecallScope())
    provider.shutdown()
    contents = [row[1] for row in facts(theirs)]
    assert "I prefer dark roast over light roast coffee" in contents  # extracted at the end
    assert "Bo Smith" in contents  # an entity
    assert "Forget me" not in contents
    assert facts(ours) == facts(theirs)
    assert recalled
    assert all(line in recalled for line in found)
    assert found
    assert "facts stored" in block


def test_a_repeated_event_adds_nothing(place):
    """Holographic's adds are idempotent: an event that comes twice leaves one fact (G4)."""
    ours = configured(place / "ours")
    provider = opened("holographic", place / "home", PYTHON, hermes_home=str(ours))
    play(provider, [("write", "add", "memory", "once")])
    play(provider, [("write", "add", "memory", "once")])
    provider.shutdown()
    assert [row[1] for row in facts(ours)] == ["once"]


def test_the_real_hermes_loads_a_directory(place):
    """A plugin of one's own, from any directory, with threads and a session switch."""
    provider = opened("recorder", place / "home", PYTHON)
    say(provider, "!thread works")
    event = SessionSwitched(new_id="s2", parent="s1", reason="branch")
    provider.on_session_switch(event, context("s2"))
    provider.shutdown()
    home = place / "home" / "hermes"
    assert [one["hook"] for one in calls(home)][:3] == ["initialize", "turn", "switch"]
