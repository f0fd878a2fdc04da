"""Questions to Honcho's own model: every few turns, so many a day, never in anybody's way.

An answer takes seconds and costs money. So it is asked beside the recall, in a thread, and stands
beside what the session's next recalls find.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable

from memorybus.errors import ProviderError

from memorybus_providers.adapters.owners import Owner
from memorybus_providers.honcho.options import Level, Options
from memorybus_providers.honcho.questions import AskedFile

_log = logging.getLogger("memorybus")

THREAD = "memorybus-dialectic"
"""The name of the threads that ask."""

Ask = Callable[[str, Level], str]
"""Puts a question to the model: the question, how hard to think; returns the answer or ""."""


class Dialectic:
    """Counts turns by their prompts, and asks when it is time to."""

    def __init__(self, options: Options, asked: AskedFile) -> None:
        """Ask nothing yet."""
        self._options, self._asked = options, asked

    def supplement(self, owner: Owner, session: str, prompt: str, ask: Ask) -> str:
        """Return what was found out last in a session, and ask anew if it is time to."""
        options = self._options
        if not options.dialectic_every:
            return ""
        seconds = options.dialectic_timeout * options.dialectic_depth
        try:
            turn = self._asked.turn(owner, session, prompt, options.dialectic_every, seconds)
        except sqlite3.Error as error:
            _log.warning("Honcho's model is not asked: %s", error)
            return ""
        if turn.until:
            threading.Thread(
                target=self._ask,
                args=(owner, session, prompt, turn.answer, ask),
                name=THREAD,
                daemon=True,
            ).start()
        return turn.answer

    def answer(self, question: str, level: Level, ask: Ask) -> str | None:
        """Put one question now; None if today's are spent.

        Raises:
            ProviderError: Honcho does not answer.
        """
        return ask(question, level) if self._asked.spend() else None

    def forget(self, owner: Owner) -> None:
        """Erase what was found out for an owner."""
        self._asked.forget(owner)

    def _ask(self, owner: Owner, session: str, prompt: str, known: str, ask: Ask) -> None:
        """Ask, and question each answer in turn, as deep as the options say."""
        found = ""
        try:
            for depth in range(self._options.dialectic_depth):
                question = _wording(prompt, found or known, depth)
                found = self.answer(question, self._options.dialectic_level, ask) or found
        except (ProviderError, sqlite3.Error) as error:
            _log.warning("Honcho's model was not asked: %s", error)
        self._settle(owner, session, found)

    def _settle(self, owner: Owner, session: str, found: str) -> None:
        try:
            self._asked.answered(owner, session, found)
        except sqlite3.Error as error:
            _log.warning("what Honcho's model found out is lost: %s", error)


def _wording(prompt: str, found: str, depth: int) -> str:
    """Return the question of a depth."""
    if not depth or not found:
        return f"What is known of this person that helps to answer this?\n\n{prompt}"
    return (
        f"Asked what of this person helps to answer the text below, you said:\n\n{found}\n\n"
        "What of it is outdated, contradicted or missing? Give the corrected answer, in short."
        f"\n\n{prompt}"
    )
