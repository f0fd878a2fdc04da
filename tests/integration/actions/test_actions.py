"""What operators change is in the log before it is done, whoever does it and how."""

import sys
from contextlib import closing
from typing import Any

import pytest
from helpers.processes.terminals import Terminal
from helpers.stories.scenario import environ
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LogUnavailable
from memorybus.events import OperatorActed
from memorybus_console.actions.action import Action, Ground, perform
from memorybus_console.actions.every import ACTIONS
from memorybus_console.operations import journal

ARGUMENTS: dict[str, Any] = {
    "name": "rec",
    "provider": "rec",
    "into": "a-copy",
    "event": "e" * 32,
    "memory": "0" * 14,
    "run": "0198f2c4",
    "repetitions": "review",
    "everything": True,
    "user": "ana",
    "directory": "/nowhere",
}
"""Values for the arguments of any action."""


def example(kind: type[Action[Any, Any]]) -> Action[Any, Any]:
    """Return an act of a kind."""
    known = {name: ARGUMENTS[name] for name in kind.__dataclass_fields__ if name in ARGUMENTS}
    return kind(**known, reason="a test")


def recorded(settings: Settings) -> list[OperatorActed]:
    """Return the acts that the log has."""
    with closing(journal.open_history(settings)) as history:
        events = journal.newest_events(history, journal.EventSelection(), 50, unread=[])
    return [one.envelope.event for one in events if isinstance(one.envelope.event, OperatorActed)]


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.title)
def test_every_act_is_recorded_first(settings, monkeypatch, kind):
    """When an act is carried out, the log has who does it, what, and why; then that it failed."""
    before: list[OperatorActed] = []

    def carry_out(self: Action[Any, Any], ground: Ground) -> None:
        before.extend(recorded(ground.settings))
        raise ConfigError("it cannot be done")

    monkeypatch.setattr(kind, "carry_out", carry_out)
    with pytest.raises(ConfigError, match="it cannot be done"):
        perform(example(kind), Ground(settings, "ann@host"))
    (act,) = before
    assert (act.act, act.operator, act.reason) == (kind.title, "ann@host", "a test")
    assert act.about == {name: str(ARGUMENTS[name]) for name in kind.recorded if name in act.about}
    assert act.about
    assert [one.failed for one in recorded(settings)] == ["", "it cannot be done"]


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.title)
def test_nothing_is_done_that_cannot_be_recorded(make_settings, monkeypatch, kind):
    """If the log cannot be reached, an act fails before it changes anything."""
    monkeypatch.setattr(kind, "carry_out", lambda *_: pytest.fail("it was carried out"))
    away = make_settings(url="redis://127.0.0.1:1/0")
    with pytest.raises(LogUnavailable):
        perform(example(kind), Ground(away, "ann@host"))


@pytest.mark.parametrize(
    "kind", [kind for kind in ACTIONS if kind.needs_reason], ids=lambda kind: kind.title
)
def test_an_act_that_loses_something_needs_a_reason(settings, kind):
    """Without a reason nothing is recorded, and nothing is done."""
    known = {name: ARGUMENTS[name] for name in kind.__dataclass_fields__ if name in ARGUMENTS}
    with pytest.raises(ConfigError, match="give a reason"):
        perform(kind(**known, reason=" "), Ground(settings, "ann@host"))


@pytest.mark.parametrize(("answer", "acts"), [("", []), ("n", []), ("y", ["forget"])])
def test_a_person_at_a_terminal_sees_the_plan_and_is_asked(
    redis_url, make_settings, short_dir, answer, acts
):
    """Only yes carries an act out; whatever else is typed changes and records nothing."""
    settings = make_settings(url=redis_url, providers=())
    with MemoryBus.connect(settings) as bus:
        bus.session("s", user="ana", warm=False).turn_completed("My cat is Tom.", "Noted.")
        assert bus.flush("logged", 30)
    words = ("forget", "--user", "ana")
    environment = environ(settings) | {"TERM": "dumb"}
    terminal = Terminal([sys.executable, "-m", "memorybus", *words], environment, short_dir)
    try:
        terminal.see("would hide 2 events of 1 session for good")
        terminal.see("Forget? [y/N]")
        terminal.type(answer)
        if acts:
            terminal.see("Reason, written to the log (optional):")
            terminal.type("a test")
        terminal.see("events are hidden" if acts else "nothing was done")
        assert terminal.end() == 0, terminal.seen
    finally:
        terminal.close()
    assert [(act.act, act.reason) for act in recorded(settings)] == [(a, "a test") for a in acts]
