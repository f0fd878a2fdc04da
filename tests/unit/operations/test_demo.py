"""The bundled conversation covers what an agent does, and makes sense as memory writes."""

from memorybus_console.operations.demo import PLAY, play_steps
from memorybus_console.views.demo import describe_step

STEPS = [step for act in PLAY.acts for step in act.steps]
WRITES = [step for step in STEPS if step.event == "memory"]


def test_the_play_covers_everything_an_agent_publishes():
    """Two sessions with turns, all three writes, a branch, a compression, a delegation, an end."""
    assert len(PLAY.acts) == 2
    assert {step.event for step in STEPS} == {
        "turn", "memory", "branch", "switch", "compress", "delegate", "end",
    }  # fmt: skip
    assert {step.action for step in WRITES} == {"add", "replace", "remove"}
    assert {step.store for step in WRITES} == {"memory", "user"}
    assert 12 <= sum(step.event == "turn" for step in STEPS) <= 20


def test_replaced_and_removed_text_is_there_exactly_once():
    """Each replace and remove finds the one entry it means."""
    stores: dict[str, list[str]] = {"memory": [], "user": []}
    for step in WRITES:
        entries = stores[step.store]
        if step.old_text:
            (found,) = [entry for entry in entries if step.old_text in entry]
            entries.remove(found)
        if step.content:
            assert step.content not in entries
            entries.append(step.content)

    assert any("calcium sulfonate" in entry for entry in stores["memory"])
    assert not any("turned by hand" in entry for entry in stores["user"])


def test_every_step_can_be_shown():
    """No step is without words."""
    assert all(describe_step(step) for step in STEPS)


class NamedSession:
    """A session that only knows its name and accepts whatever is published."""

    def __init__(self, session_id):
        self.id = session_id

    def branch(self, new_id, **more):
        """Fork."""
        return NamedSession(new_id)

    def switched_to(self, new_id, **more):
        """Go on elsewhere."""
        return NamedSession(new_id)

    def compressed(self):
        """Go on in place."""
        return self

    def _accept(self, *words, **more):
        pass

    turn_completed = memory_written = compressing = delegated = ended = _accept


def test_the_branch_is_left_for_where_it_came_from():
    """Only the branch's own steps belong to it; what follows goes on in the first session."""
    steps = PLAY.acts[0].steps
    after = [session.id for _, session in play_steps(steps, NamedSession("one"))]
    begin = next(i for i, step in enumerate(steps) if step.event == "branch")
    end = next(i for i, step in enumerate(steps) if step.event == "switch")

    assert set(after[:begin]) == {"one"}
    assert set(after[begin:end]) == {"one-branch"}
    assert set(after[end:]) == {"one"}
