"""What the bus retracts is what the person took back, whatever the real Hermes stores anew."""

import json
import os
import subprocess

import pytest
from helpers.hermes.hermes_agent import PYTHON, ROOT
from helpers.hermes.hermes_world import World
from memorybus.events import SessionSwitched, TurnCompleted

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.releases,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Hermes Agent: run make hermes-venv"),
]


def retracted(world: World) -> list[str]:
    """Return the first words of the turns that the log retracts, in the order of retraction."""
    said = {e.id: e.event.user.partition(":")[0] for e in world.events(TurnCompleted)}
    switches = [e.event for e in world.events(SessionSwitched)]
    return [said[one] for switch in switches for one in switch.retracted]


def test_random_conversations_lose_no_turn(tmp_path):
    """Turns, undos, retries, compressions, rotations and restarts: retracted is what was undone."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HERMES_HOME": str(tmp_path)}
    done = subprocess.run(
        [PYTHON, "-m", "helpers.hermes.hermes_walks", "0", "25"],
        env={**env, "PYTHONPATH": str(ROOT / "tests")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == []


def test_what_compressions_carry_over_is_not_taken_back(make_hermes_world):
    """Two compressions in place, an undo and a resume: only the undone turn is retracted (G1)."""
    world = make_hermes_world()
    world.compress_twice_and_resume(world.hermes())
    assert retracted(world) == ["part 14"]
    report = world.reconcile()
    assert (report["missing"], report["undone"], report["sessions"]) == (0, 0, [])


def test_a_refused_answer_is_taken_back(make_hermes_world):
    """``/retry`` calls no hook: at the next turn the refused one is retracted."""
    world = make_hermes_world()
    hermes = world.hermes()
    hermes.chat("the one that stays")
    hermes.chat("the one that is retried")
    if not hermes.do("retry")["marked"]:
        pytest.skip("this release leaves a refused answer as it is in its store")
    hermes.do("settle")
    world.wait_turns(
        hermes.session, "the one that stays", "the one that is retried", "the one that is retried"
    )
    first, refused, again = world.events(TurnCompleted, hermes.session)
    [switch] = [e.event for e in world.events(SessionSwitched) if e.event.retracted]
    assert switch.retracted == (refused.id,)
    assert again.session.root == first.session.root
