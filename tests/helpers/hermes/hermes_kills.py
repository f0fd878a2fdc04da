"""Hermes killed in the middle of its conversations, at points that a seed chooses."""

import random

from helpers.hermes.hermes_agent import Hermes

TURNS = 3
_SEED = 20


def killed(hermes: Hermes, kills: int) -> list[str]:
    """Let so many forks of a process talk and be killed; return the turns that were answered.

    Each dies in a turn chosen at random, at a random moment of that turn.
    """
    rng = random.Random(_SEED)
    spans = _spans(hermes)
    told: list[str] = []
    for number in range(kills):
        turn = rng.randrange(TURNS)
        told += _talk(hermes, f"k{number}", turn, rng.uniform(0, spans[turn]))
    return told


def _spans(hermes: Hermes) -> list[float]:
    """Return the seconds that each turn of a conversation takes, and a little more."""
    pid = hermes.fork()
    spans = [1.1 * hermes.chat(_text("whole", turn))["s"] for turn in range(TURNS)]
    hermes.kill_fork(pid)
    return spans


def _talk(hermes: Hermes, name: str, last: int, moment: float) -> list[str]:
    """Say some turns in a fork and kill it so many seconds after the last was said."""
    pid = hermes.fork()
    told = [_text(name, turn) for turn in range(last)]
    for text in told:
        hermes.chat(text)
    text = _text(name, last)
    hermes.begin("chat", text=text)
    answered = hermes.answered(moment)
    late = hermes.kill_fork(pid)
    return [*told, text] if answered or late else told


def _text(name: str, turn: int) -> str:
    return f"I prefer boat {name} number {turn}"
