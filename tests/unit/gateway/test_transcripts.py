"""What the lines of a transcript tell, before anything is published."""

from datetime import UTC

import pytest
from helpers.stories.transcripts import Script, as_lines, claude_line, codex_lines
from memorybus_console.gateway.transcripts import SubAgentTask, read_stretches, tasks_of
from memorybus_console.operations.ingest.reading.model import ReadingOptions
from memorybus_console.operations.ingest.report import LeftOut

OPTIONS = ReadingOptions(UTC, 1 << 20)
COMMAND = claude_line("user", "<command-name>/clear</command-name>", 8)
META = claude_line("user", "Caveat: nothing", 9, isMeta=True)
SIDE = claude_line(
    "assistant", [{"type": "text", "text": "I am a sub-agent."}], 7, isSidechain=True
)
SUMMARY = claude_line("user", "This session is being continued…", 6, isCompactSummary=True)


def told(text: str, kind: str = "claude-code") -> list[tuple[int, str, str]]:
    """Return for each stretch its last line, the prompt and the answer."""
    stretches = read_stretches(text.split("\n"), kind, OPTIONS, LeftOut())
    return [
        (one.end, one.turn.user if one.turn else "", one.turn.assistant if one.turn else "")
        for one in stretches
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param(Script().turn("a", "b").text, [(2, "a", "b")], id="a turn"),
        pytest.param(
            Script().turn("a", "b").turn("c", "d").text, [(2, "a", "b"), (4, "c", "d")], id="two"
        ),
        pytest.param(
            Script()
            .add("user", "a")
            .tool("Bash", {"command": "ls"}, "x")
            .add("assistant", "b")
            .text,
            [(4, "a", "b")],
            id="a result of a tool is no prompt",
        ),
        pytest.param(
            as_lines(COMMAND, META, SIDE, SUMMARY) + Script().turn("a", "b").text,
            [(4, "", ""), (6, "a", "b")],
            id="commands, notes, sub-agents and summaries are no prompts",
        ),
        pytest.param(
            as_lines(claude_line("assistant", "b", 1)) + Script(2).turn("c", "d").text,
            [(1, "", "b"), (3, "c", "d")],
            id="the rest of a turn that was read before",
        ),
        pytest.param(
            as_lines("{broken", "", "[", "null", "7", '"x"', "\ud800")
            + Script().turn("a", "b").text,
            [(7, "", ""), (9, "a", "b")],
            id="lines that are no JSON, or no object",
        ),
        pytest.param(
            Script().turn("a\u2028b", "c").text, [(2, "a\u2028b", "c")], id="separators in a text"
        ),
        pytest.param(
            Script().add("user", "a").add("user", "b").add("assistant", "c").text,
            [(1, "a", ""), (3, "b", "c")],
            id="an interrupted prompt",
        ),
    ],
)
def test_lines_are_divided_at_prompts(text, wanted):
    """A turn has the lines from its prompt to the next one, whatever stands between them."""
    assert told(text) == wanted


def test_a_rollout_of_codex_is_divided_likewise():
    """Codex's messages become turns; its first line, the session's, belongs to none."""
    assert told(codex_lines("t", ("a", "b"), ("c", "d")), "codex") == [
        (1, "", ""), (3, "a", "b"), (5, "c", "d"),
    ]  # fmt: skip


def test_a_sub_agent_is_a_delegation():
    """A call of Task and its result are a task; other tools are none, nor are sidechains."""
    agent = {"agentId": "a1", "totalToolUseCount": 3}
    script = Script().tool("Task", {"prompt": "Find it."}, "Found.", toolUseResult=agent)
    script.tool("Bash", {"command": "ls"}, "x").tool("Agent", {"description": "Look."}, "Seen.")
    script.tool("Task", {"prompt": "Inner."}, "No.", isSidechain=True)
    tasks = list(tasks_of(script.lines))
    assert tasks == [
        SubAgentTask("toolu_0", "Find it.", "Found.", "a1"),
        SubAgentTask("toolu_4", "Look.", "Seen.", "toolu_4"),
    ]
