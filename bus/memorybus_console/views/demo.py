"""Shows people the demo: each step, the recall, and the timings."""

from typing import Final

from memorybus.text.display import visible
from rich.panel import Panel
from rich.text import Text

from memorybus_console.operations.demo import PLAY, DemoResult, PlayStep
from memorybus_console.views.output import Output
from memorybus_console.views.render import table

_SIGNS: Final = {"add": "+", "replace": "±", "remove": "−"}


def describe_step(step: PlayStep) -> str:
    return {
        "turn": f"{PLAY.user}: {step.user}\n{PLAY.assistant}: {step.assistant}",
        "memory": f"{step.store} {_SIGNS[step.action]} {step.content or step.old_text}",
        "branch": step.title,
        "switch": "back to the trunk",
        "compress": "the context is compressed (no. 1)",
        "delegate": f"{step.task}\n→ {step.result}",
        "end": step.reason,
    }[step.event]


def show_step(output: Output, session: str, step: PlayStep) -> None:
    head = f"{visible(session):<14} {step.event:<9} "
    words = visible(describe_step(step)).replace("\n", "\n" + " " * len(head))
    output.show(Text.assemble((head, "dim"), words))


def show_result(output: Output, result: DemoResult) -> None:
    output.show(Text(f"\n{PLAY.question}\n", style="bold"))
    output.show(Panel.fit(Text(visible(result.recalled)), title="recalled", title_align="left"))
    rows = (
        (name, count, result.published, f"{result.caught_up[name] * 1e3:.1f} ms")
        for name, count in result.applied.items()
    )
    output.show(table(("provider", "applied", "published", "all applied after"), rows))
    output.show(
        f"\npublish {result.publish * 1e6:.0f} µs (median)   all applied everywhere "
        f"{max(result.caught_up.values()) * 1e3:.1f} ms after the last event\n"
        f"answer {result.answer * 1e3:.1f} ms (a process starts)   warm {result.again * 1e6:.0f} µs"
        f"   whole demo {result.seconds:.1f} s"
    )
    output.show(Text("Nothing is left running. Your own: memorybus up", style="dim"))
