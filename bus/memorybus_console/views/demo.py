"""Shows people the demo: one line for each step, progress bars, the recall, the timings."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from memorybus_console.operations.demo.audience import Audience
from memorybus_console.operations.demo.demo import DemoResult
from memorybus_console.operations.demo.play import PLAY, PlayStep
from memorybus_console.views.output import Output
from memorybus_console.views.render import grid
from memorybus_console.views.safe import visible

PAUSE_SECONDS = 0.06
"""Seconds between the demo's steps at a terminal."""

_SIGNS = {"add": "+", "replace": "±", "remove": "−"}
_COLOURS = {
    "memory": "yellow",
    "branch": "magenta",
    "switch": "magenta",
    "compress": "blue",
    "delegate": "cyan",
    "end": "red",
}


def describe_step(step: PlayStep) -> str:
    """Return a step of the demo in words."""
    return {
        "turn": f"{PLAY.user}: {step.user}\n{PLAY.assistant}: {step.assistant}",
        "memory": f"{step.store} {_SIGNS[step.action]} {step.content or step.old_text}",
        "branch": step.title,
        "switch": "back to the trunk",
        "compress": "the context is compressed (no. 1)",
        "delegate": f"{step.task}\n→ {step.result}",
        "end": step.reason,
    }[step.event]


class DemoView(Audience):
    """Shows the demo's progress; there are bars only at a terminal."""

    def __init__(self, output: Output) -> None:
        """Prepare the bars."""
        self.pause = PAUSE_SECONDS if output.is_live else 0.0
        self._output = output
        self._session = ""
        self._bars: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description:<12}", markup=False),
            BarColumn(32),
            MofNCompleteColumn(),
            TextColumn("events applied"),
            console=output.out,
            disable=not output.is_live,
            transient=True,
        )

    def __enter__(self) -> Self:
        """Show the bars."""
        self._output.show(Text("Starting a Redis and a worker of our own…", style="dim"))
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the bars."""
        self._progress.stop()

    def show(self, session: str, step: PlayStep) -> None:
        """Show a step that was published in a session."""
        if session != self._session:
            self._session = session
            self._output.show(Text(f"\nsession {visible(session)}", style="bold"))
        head: str = step.event
        for line in describe_step(step).split("\n"):
            words = (visible(line), _COLOURS.get(step.event, ""))
            self._output.show(Text.assemble((f"  {head:<9} ", "dim"), words))
            head = ""

    def progress(self, published: int, applied: Mapping[str, int]) -> None:
        """Show how many events each provider has applied."""
        for name, count in applied.items():
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(name, total=None)
            self._progress.update(self._bars[name], completed=count, total=max(published, 1))

    def conclude(self, result: DemoResult) -> None:
        """Show the answer, the providers and the timings."""
        show = self._output.show
        show(Text(f"\nsession demo-question\n  asks      {PLAY.question}\n", style="bold"))
        show(Panel.fit(Text(visible(result.recalled)), title="recalled", title_align="left"))
        lanes = grid("provider", "applied", "published", "all applied after", "in the answer")
        for name, count in result.applied.items():
            after = f"{result.caught_up[name] * 1e3:.1f} ms"
            said = "nothing" if name in result.silent else "yes"
            lanes.add_row(Text(visible(name)), str(count), str(result.published), after, said)
        show(lanes)
        for name, remains in result.left.items():
            self._output.note(f"{name} could not erase: {'; '.join(remains)}", "yellow")
        show(
            f"\npublish {result.publish * 1e6:.0f} µs (median)   all applied everywhere "
            f"{result.catch_up * 1e3:.1f} ms after the last event\nanswer {result.answer * 1e3:.1f}"
            f" ms (a process starts)   warm {result.again * 1e6:.0f} µs   whole demo "
            f"{result.seconds:.1f} s"
        )
        show(Text("Nothing is left running. Your own: memorybus up", style="dim"))
