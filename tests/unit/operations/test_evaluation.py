"""How well recall answers somebody's own questions."""

from pathlib import Path

import pytest
from memorybus.clock import SYSTEM
from memorybus.recall.operator_recall import RecallAnswer
from memorybus_console.operations.evaluation import (
    Evaluation,
    ExpectedAnswer,
    UnreadableQuestions,
    judge_answers,
    read_questions,
    summarize_answers,
)

ANSWERS = {
    "Who sails?": "<memory-context>Bo sails on {lt}Tuesdays{gt}. Ana rows.</memory-context>",
    "Who flies?": "<memory-context>Bo sails.</memory-context>",
    "Who sings?": "",
}


def answer(one: ExpectedAnswer) -> RecallAnswer:
    """Return what is prepared for a question."""
    silent = {"mem0": "no answer in time"} if one.question == "Who sings?" else {}
    return RecallAnswer(ANSWERS[one.question], (), silent)


def test_what_came_is_compared_as_the_fence_writes_it():
    """An expected text is found verbatim, escaped as in the block; what is missing is named."""
    sails = ExpectedAnswer("Who sails?", ("sails on <Tuesdays>", "Ana swims"))

    (found,) = judge_answers([sails], answer, SYSTEM)

    assert (found.found, found.missing) == (0.5, ("Ana swims",))
    assert found.characters == len(ANSWERS["Who sails?"])


def test_questions_that_expect_nothing_are_told_apart():
    """The share is of what was expected; what comes for nothing is counted by its length."""
    asked = [
        ExpectedAnswer("Who sails?", ("Ana rows",)),
        ExpectedAnswer("Who flies?"),
        ExpectedAnswer("Who sings?"),
    ]

    answers = list(judge_answers(asked, answer, SYSTEM))
    found = summarize_answers(answers)

    assert (found.questions, found.found) == (3, 1.0)
    assert found.characters == len(ANSWERS["Who sails?"])
    assert found.characters_for_nothing == len(ANSWERS["Who flies?"]) / 2
    assert answers[2].unanswered == {"mem0": "no answer in time"}


def test_no_question_tells_nothing():
    """Without questions of a kind their figures are unknown, not zero."""
    assert summarize_answers([]) == Evaluation(0, None, None, None, None, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"question": "a"}\n{"question": 1}', "line 2"),
        ('{"question": " "}', "line 1: the question is empty"),
        ('{"question": "a", "expect": []}', "line 1"),
        ("{", "line 1"),
        ('{"question": "\udcff"}', "line 1"),
        ("\n\n", "no question"),
    ],
)
def test_a_line_that_is_no_question_is_named(tmp_path, text, said):
    """A file that cannot be read whole is refused, with the line and what a line reads."""
    path = tmp_path / "questions.jsonl"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))

    with pytest.raises(UnreadableQuestions, match=said):
        read_questions(path)


def test_a_file_that_is_not_there_is_named():
    """A missing file is an error that names it."""
    with pytest.raises(UnreadableQuestions, match=r"nowhere\.jsonl: No such file"):
        read_questions(Path("nowhere.jsonl"))
