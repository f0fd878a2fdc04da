"""Asks Honcho's own model: every few turns, a limited number of times a day, delaying no recall.

An answer takes seconds and costs money. So a thread asks the model during the recall, and the
session's next recalls return the answer in addition to what they find.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable

from memorybus.errors import ProviderError

from memorybus_providers.honcho.options import HonchoOptions, ReasoningLevel
from memorybus_providers.honcho.questions import QuestionFile
from memorybus_providers.owners import Owner

_log = logging.getLogger("memorybus")

THREAD = "memorybus-dialectic"
"""The name of the threads that ask."""

AskModel = Callable[[str, ReasoningLevel], str]
"""Asks the model a question; it gets the question and how hard to think, and returns the answer or
an empty text."""


class Dialectic:
    """Counts turns by their prompts, and asks the model when a question is due."""

    def __init__(self, options: HonchoOptions, questions: QuestionFile) -> None:
        """Prepare; nothing is asked yet."""
        self._options, self._questions = options, questions

    def supplement(self, owner: Owner, session: str, prompt: str, ask: AskModel) -> str:
        """Return the model's last answer in a session, and ask again if a question is due."""
        options = self._options
        if not options.dialectic_every:
            return ""
        seconds = options.dialectic_timeout * options.dialectic_depth
        try:
            turn = self._questions.count_turn(
                owner, session, prompt, options.dialectic_every, seconds
            )
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

    def answer(self, question: str, level: ReasoningLevel, ask: AskModel) -> str | None:
        """Ask one question now; return None if today's questions are used up.

        Raises:
            ProviderError: Honcho does not answer.
        """
        return ask(question, level) if self._questions.spend() else None

    def forget(self, owner: Owner) -> None:
        """Erase the answers for an owner."""
        self._questions.forget(owner)

    def _ask(self, owner: Owner, session: str, prompt: str, known: str, ask: AskModel) -> None:
        """Ask, then ask what is wrong with the answer, as often as ``dialectic_depth`` says."""
        found = ""
        try:
            for depth in range(self._options.dialectic_depth):
                question = _word_question(prompt, found or known, depth)
                found = self.answer(question, self._options.dialectic_level, ask) or found
        except (ProviderError, sqlite3.Error) as error:
            _log.warning("Honcho's model was not asked: %s", error)
        self._keep_answer(owner, session, found)

    def _keep_answer(self, owner: Owner, session: str, found: str) -> None:
        try:
            self._questions.keep_answer(owner, session, found)
        except sqlite3.Error as error:
            _log.warning("what Honcho's model found out is lost: %s", error)


def _word_question(prompt: str, found: str, depth: int) -> str:
    """Return the first question, or at a greater depth one about the answer found so far."""
    if not depth or not found:
        return f"What is known of this person that helps to answer this?\n\n{prompt}"
    return (
        f"Asked what of this person helps to answer the text below, you said:\n\n{found}\n\n"
        "What of it is outdated, contradicted or missing? Give the corrected answer, in short."
        f"\n\n{prompt}"
    )
