"""Tasks: what takes longer than a request."""

import threading

import pytest
from helpers.processes.waiting import wait_until
from memorybus.errors import ConfigError
from memorybus_console.web.tasks import PageTasks, Tell


def test_a_task_tells_how_far_it_is_and_what_it_came_to(fake_clock):
    """While it runs its step is seen, and afterwards what it came to."""
    tasks, go = PageTasks(fake_clock), threading.Event()

    def work(tell: Tell) -> str:
        tell("fills", 3, 10)
        go.wait(30)
        return "it serves"

    tasks.begin("rebuild", "mem0", "ann", work)
    wait_until(lambda: tasks.all()[0].step == "fills", "the step is seen")
    assert (tasks.all()[0].done, tasks.all()[0].total, tasks.all()[0].is_running) == (
        3,
        10,
        True,
    )
    with pytest.raises(ConfigError, match="mem0 already"):
        tasks.begin("drop", "mem0", "bob", lambda _: "")
    go.set()
    wait_until(lambda: not tasks.all()[0].is_running, "it is over")
    assert tasks.all()[0].result == "it serves"


@pytest.mark.parametrize(
    ("error", "said"),
    [(ConfigError("no such redis://u:secret@h"), "no such redis://"), (KeyError("x"), "memorybus")],
)
def test_a_task_that_fails_says_why(fake_clock, error, said):
    """A failure is told, without credentials; one of our own is not quoted."""
    tasks = PageTasks(fake_clock)

    def work(_: Tell) -> str:
        raise error

    tasks.begin("rebuild", "mem0", "ann", work)
    wait_until(lambda: not tasks.all()[0].is_running, "it is over")
    assert said in tasks.all()[0].failed
    assert "secret" not in tasks.all()[0].failed
