"""Measures how well recall answers an operator's questions, by the texts that they expect.

A file of questions is JSON lines: ``{"question": …, "expected": [text, …], "user": …}``. An
expected text counts as found if the memory block for the question contains it verbatim, as the
fence escapes it. A question without expected texts is about something that was never said: the
shorter its block, the better.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from memorybus.clock import Clock
from memorybus.errors import MemoryBusError
from memorybus.msgspec_types import prepared
from memorybus.recall.operator_recall import RecallAnswer
from memorybus.text.fence import escape

from memorybus_console.result import HIDDEN, TEXT, Column, Result


class UnreadableQuestions(MemoryBusError):
    """A file of questions cannot be read; the message names the line."""


class ExpectedAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question and the texts that its answer must contain.

    Attributes:
        expected: texts that the block must contain; none if nothing was ever said about it.
        user: the person whose memories are searched; None for the person that the command names.
    """

    question: str
    expected: tuple[str, ...] = ()
    user: str | None = None
    agent: str | None = None  # the agent's name; None for the one that the command names
    workspace: str | None = None  # the workspace; None for the one that the command names


class JudgedAnswer(msgspec.Struct, frozen=True):
    """The answer to one question, judged.

    Attributes:
        found: share of the expected texts that were found, 0 to 1; None if none was expected.
        characters: length of the whole block.
        ms: milliseconds until the answer came.
    """

    question: Annotated[str, TEXT]
    found: Annotated[float | None, HIDDEN]
    missing: Annotated[tuple[str, ...], TEXT]
    characters: Annotated[int, HIDDEN]
    ms: Annotated[float, HIDDEN]
    unanswered: Annotated[dict[str, str], Column(title="did not answer", wraps=True)]


class Evaluation(Result, frozen=True):
    """The summary of the answers to all questions; a figure is None if no question has it.

    Attributes:
        found: mean share of the expected texts that were found.
        characters: mean length of the blocks of questions that expect something.
        characters_for_nothing: median length of the blocks of questions that expect nothing.
        p50_ms: median time of an answer, milliseconds.
    """

    questions: int
    found: float | None
    characters: float | None
    characters_for_nothing: float | None
    p50_ms: float | None
    answers: Annotated[list[JudgedAnswer], HIDDEN]

    def facts(self) -> dict[str, str]:
        return {
            "questions": str(self.questions),
            "found": _in_words(self.found, ".0%", "of what was expected"),
            "block": _in_words(self.characters, ",.0f", "characters on average"),
            "nothing": _in_words(
                self.characters_for_nothing,
                ",.0f",
                "characters (median) where nothing was expected",
            ),
            "time": _in_words(self.p50_ms, ".0f", "ms (median)"),
        }

    def failed(self) -> bool:
        return any(answer.unanswered for answer in self.answers)

    def missed(self) -> list[JudgedAnswer]:
        """Return the answers that lack something expected, or a provider."""
        return [answer for answer in self.answers if answer.missing or answer.unanswered]


def read_questions(path: Path) -> list[ExpectedAnswer]:
    """Read a file of questions; blank lines are skipped.

    Raises:
        UnreadableQuestions: a line is not such an object, or the file cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UnreadableQuestions(f"{path}: {error.strerror}") from error
    questions = [_parse_question(path, n, line) for n, line in enumerate(lines, 1) if line.strip()]
    if not questions:
        raise UnreadableQuestions(f"{path}: there is no question in it")
    return questions


def _parse_question(path: Path, number: int, line: bytes) -> ExpectedAnswer:
    try:
        expected = msgspec.json.decode(line, type=prepared(ExpectedAnswer))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableQuestions(
            f"{path}, line {number}: {error}; a line reads "
            '{"question": "…", "expected": ["…"], "user": "…"}'
        ) from error
    if not expected.question.strip():
        raise UnreadableQuestions(f"{path}, line {number}: the question is empty")
    return expected


def judge_answers(
    questions: Sequence[ExpectedAnswer],
    ask: Callable[[ExpectedAnswer], RecallAnswer],
    clock: Clock,
) -> Iterator[JudgedAnswer]:
    """Ask one question after another, and yield each answer, judged.

    Args:
        clock: measures how long an answer takes.
    """
    for question in questions:
        began = clock.monotonic()
        answer = ask(question)
        yield _judge_answer(question, answer, (clock.monotonic() - began) * 1_000)


def _judge_answer(asked: ExpectedAnswer, answer: RecallAnswer, ms: float) -> JudgedAnswer:
    missing = tuple(text for text in asked.expected if escape(text) not in answer.text)
    share = 1 - len(missing) / len(asked.expected) if asked.expected else None
    return JudgedAnswer(asked.question, share, missing, len(answer.text), ms, answer.missing)


def summarize_answers(answers: Sequence[JudgedAnswer]) -> Evaluation:
    answered = [answer for answer in answers if answer.found is not None]
    nothing = [answer.characters for answer in answers if answer.found is None]
    return Evaluation(
        questions=len(answers),
        found=_mean([answer.found for answer in answered if answer.found is not None]),
        characters=_mean([answer.characters for answer in answered]),
        characters_for_nothing=statistics.median(nothing) if nothing else None,
        p50_ms=statistics.median(answer.ms for answer in answers) if answers else None,
        answers=list(answers),
    )


def _in_words(figure: float | None, form: str, unit: str) -> str:
    return "-" if figure is None else f"{figure:{form}} {unit}"


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None
