"""An act from the command line: what a person at a terminal is asked."""

from dataclasses import dataclass

import pytest
from memorybus_console.actions import action as actions
from memorybus_console.actions.action import Action
from memorybus_console.cli import answers
from memorybus_console.cli.options import Common
from memorybus_console.cli.providers.dialogue import Dialogue
from memorybus_console.result import Result


class Kept(Result, frozen=True):
    """What would be, or was, done."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Harmless(Action[Kept, Kept]):
    """Loses nothing."""

    title = "tidy up"
    is_harmless = True

    def plan(self, ground):
        return Kept(self.reason)

    def carry_out(self, ground):
        return Kept(self.reason)


class Losing(Harmless):
    """Loses something, and needs a reason."""

    title = "throw away"
    is_harmless = False
    needs_reason = True


@pytest.fixture(name="terminal")
def _terminal(monkeypatch, tmp_path):
    """Return the list of what a person types; the log takes every record."""
    typed: list[str] = []
    monkeypatch.setenv("MEMORYBUS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(answers, "_is_person_there", lambda output: True)
    monkeypatch.setattr(actions, "record_act", lambda settings, record: None)
    monkeypatch.setattr(Dialogue, "_read_line", lambda self, prompt, password: typed.pop(0))
    return typed


def test_nothing_is_asked_for_a_harmless_act(terminal):
    """What loses nothing is done at once."""
    assert answers.act(Harmless(), Common()) == Kept("")


def test_a_reason_is_asked_for_where_one_is_needed(terminal):
    """After the yes a person is asked for the reason, unless the command line gave it."""
    terminal += ["y", "it is old", "y"]
    assert answers.act(Losing(), Common()) == Kept("it is old")
    assert answers.act(Losing(reason="given"), Common()) == Kept("given")
    assert terminal == []


def test_without_a_yes_nothing_is_done(terminal):
    """The plan is shown, and no reason asked for."""
    terminal += [""]
    assert answers.act(Losing(), Common()) is None
    assert terminal == []
