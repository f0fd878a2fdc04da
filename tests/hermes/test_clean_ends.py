"""The last events of the real Hermes, however it ends: Redis has them when the process is gone."""

import pytest
from helpers.stories.spools import left_unsent
from memorybus.events import SessionEnded, TurnCompleted

pytestmark = [pytest.mark.hermes, pytest.mark.releases, pytest.mark.timeout(300)]

RUNS = 5


def test_an_end_without_exit_functions_sends_the_last_turn(make_hermes_world):
    """G1: ``os._exit`` right after the shutdown of memory, as a gateway ends: nothing is left."""
    world = make_hermes_world()
    hermes = world.hermes()
    for number in range(RUNS):
        hermes.fork()
        hermes.do("message", session=f"s{number}", user="ann", text=f"the last word {number}")
        assert hermes.do("drop") == {"ended": 0}, hermes.said()
        assert left_unsent(world.settings) == 0
        assert world.turns(f"s{number}") == [f"the last word {number}"]
        assert len(world.events(SessionEnded, f"s{number}")) == 1


def test_leaving_the_prompt_sends_the_last_turn(make_hermes_world):
    """G1: a conversation at the prompt ends as the command line ends it: nothing is left."""
    world = make_hermes_world()
    hermes = world.hermes()
    for number in range(RUNS):
        hermes.fork()
        hermes.chat(f"the last word {number}")
        hermes.leave_fork()
        assert left_unsent(world.settings) == 0
        assert len(world.events(SessionEnded)) == number + 1


@pytest.mark.parametrize("words", [("-z",), ("chat", "-q")], ids=" ".join)
def test_one_question_and_its_end_are_sent(words, make_hermes_world):
    """G1: the command for one question, which ends at once, has sent the turn and its end."""
    world = make_hermes_world()
    done = world.home.run(*words, "how deep is the sea", "--toolsets", "memory")
    assert done.returncode == 0, done.stderr
    assert left_unsent(world.settings) == 0
    assert len(world.events(TurnCompleted)) == 1
    assert len(world.events(SessionEnded)) == 1
