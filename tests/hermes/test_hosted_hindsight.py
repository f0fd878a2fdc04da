"""The real hindsight plugin, hosted, with a stand-in for its client package."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.hermes.hermes_agent import PYTHON
from helpers.hosted.hosted import context, ended, opened, say
from helpers.services.hindsight_stub import python_with_client
from memorybus.errors import Unavailable
from memorybus.events import SessionSwitched
from memorybus_providers.adapters.hermes import HostedHermesProvider

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Hermes Agent: run make hermes-venv"),
]


@pytest.fixture
def home(short_dir: Path) -> Path:
    """Return a HERMES_HOME with hindsight configured, on a closed port."""
    config = {"mode": "cloud", "api_url": "http://127.0.0.1:9", "api_key": "no-key-at-all"}
    folder = short_dir / "theirs" / "hindsight"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**config, "retain_every_n_turns": 1}))
    return folder.parent


@pytest.fixture
def hindsight(home: Path, short_dir: Path) -> Iterator[HostedHermesProvider]:
    """Return an open provider of the real plugin."""
    python = python_with_client(short_dir, PYTHON)
    with ended([short_dir]):
        provider = opened("hindsight", short_dir / "home", python, hermes_home=str(home))
        yield provider
        provider.shutdown()


def retained(home: Path) -> list[str]:
    """Return what reached the service, one text per call."""
    path = home / "retained.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)[2][0]["content"] for line in lines]


def test_a_turn_is_retained_when_it_counts(hindsight, home):
    """The writer's queue is awaited."""
    say(hindsight, "my cat is Mimi")
    assert len(retained(home)) == 1
    assert "my cat is Mimi" in retained(home)[0]


def test_a_failed_retain_fails_the_event(hindsight, home):
    """What the writer only logs comes back as the event's failure; then it is tried again."""
    (home / "down").touch()
    with pytest.raises(Unavailable, match="hindsight is down"):
        say(hindsight, "my cat is Mimi")
    (home / "down").unlink()
    say(hindsight, "my cat is Mimi")
    assert "my cat is Mimi" in retained(home)[-1]


def test_a_switch_is_followed(hindsight, home):
    """After a compression the turns go on under the new session."""
    say(hindsight, "before")
    event = SessionSwitched(new_id="s2", parent="s1", reason="compression")
    hindsight.on_session_switch(event, context("s2"))
    say(hindsight, "after", "s2")
    assert "after" in retained(home)[-1]
    assert "before" not in retained(home)[-1]
