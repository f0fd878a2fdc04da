"""Recalls for the prompt of a turn: once, however often the turn calls its model."""

from collections.abc import Sequence

from memorybus import Session


class TurnRecall:
    """The memory block of a session's present prompt.

    The calls of a turn's model get the same bytes, so that a provider's cache of prompts holds.
    """

    def __init__(self) -> None:
        self._asked = ("", "")
        self._block = ""

    def block(self, session: Session, turn: str, prompt: str, known: Sequence[str]) -> str:
        """Return the block for a prompt, or "" if no memory is related to it.

        Args:
            session: the session that asks.
            turn: distinguishes this turn from another one with the same prompt.
            prompt: what the person said.
            known: the texts that the model sees anyway.
        """
        if self._asked != (turn, prompt):
            messages = [{"role": "user", "content": text} for text in known]
            self._block = session.prefetch(prompt, known=messages)
            self._asked = turn, prompt
        return self._block
