"""What `memorybus demo` shows in the end."""

from memorybus_console.operations.demo import DemoResult
from memorybus_console.views.demo import show_result
from memorybus_console.views.output import Output

BLOCK = "<memory-context>\nFrom files:\n- the lens turns by hand\n</memory-context>"


def test_in_a_pipe_the_block_is_as_wide_as_its_text(capsys):
    """G10: a pipe has no width, and what is recalled is framed no wider than it needs."""
    result = DemoResult(
        published=3,
        applied={"files": 3},
        caught_up={"files": 0.1},
        recalled=BLOCK,
        publish=0.001,
        answer=0.2,
        again=0.01,
    )
    show_result(Output(json=False), result)
    framed = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith(("╭", "│", "╰"))
    ]
    assert len(framed) == len(BLOCK.splitlines()) + 2
    assert {len(line) for line in framed} == {max(map(len, BLOCK.splitlines())) + 4}
