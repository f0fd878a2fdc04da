"""The real holographic plugin, hosted: the same store as inside Hermes, and other real loading."""

import json
import subprocess
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


def test_the_store_is_the_same_as_inside_hermes(place: Path) -> None:
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


def test_a_repeated_event_adds_nothing(place: Path) -> None:
    """Holographic's adds are idempotent: an event that comes twice leaves one fact (G4)."""
    ours = configured(place / "ours")
    provider = opened("holographic", place / "home", PYTHON, hermes_home=str(ours))
    play(provider, [("write", "add", "memory", "once")])
    play(provider, [("write", "add", "memory", "once")])
    provider.shutdown()
    assert [row[1] for row in facts(ours)] == ["once"]


def test_the_adapters_know_this_hermes(place: Path) -> None:
    """Every private attribute that a settle adapter reads is there in Hermes 0.19's plugins."""
    relied_on = {
        "hindsight": ["_retain_queue", "_retain_every_n_turns"],
        "honcho": [
            *("_session_initialized", "_cron_skipped", "_init_thread"),
            "_start_session_init_background",
        ],
        "mem0": ["_backend", "_sync_thread", "_is_breaker_open"],
    }
    program = (
        "import json, sys; from plugins.memory import load_memory_provider as load\n"
        "relied_on = json.load(sys.stdin)\n"
        "lacking = [f'{n}.{a}' for n, names in relied_on.items() for a in names\n"
        "           if not hasattr(load(n), a)]\n"
        "print(json.dumps(lacking))"
    )
    env = {"HERMES_HOME": str(place), "HOME": str(place), "HERMES_DISABLE_LAZY_INSTALLS": "1"}
    done = subprocess.run(
        [PYTHON, "-I", "-c", program],
        input=json.dumps(relied_on),
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout) == []


def test_the_real_hermes_loads_a_directory(place: Path) -> None:
    """A plugin of one's own, from any directory, with threads and a session switch."""
    provider = opened("recorder", place / "home", PYTHON, settle="threads")
    say(provider, "!thread works")
    event = SessionSwitched(new_id="s2", parent="s1", reason="branch")
    provider.on_session_switch(event, context("s2"))
    provider.shutdown()
    home = place / "home" / "hermes"
    assert [one["hook"] for one in calls(home)][:3] == ["initialize", "turn", "switch"]
