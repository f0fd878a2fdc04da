"""The demo as people see it: one line per step, two bars that catch up, the block, the timings."""

from types import TracebackType
from typing import Self

from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from memorybus.operations.demo import demo
from memorybus.operations.demo.script import (
    ASSISTANT,
    PERSON,
    QUESTION,
    Branch,
    Compress,
    Delegate,
    Remember,
    Return,
    Say,
    Step,
)
from memorybus.surfaces.views.output import Output
from memorybus.surfaces.views.render import grid
from memorybus.surfaces.views.safe import visible

_SIGNS = {"add": "+", "replace": "±", "remove": "−"}


def told(step: Step) -> tuple[str, str, str]:  # noqa: PLR0911  one flat dispatch
    """Return a step's event, what it says and the colour it is shown in."""
    match step:
        case Say(user=user, assistant=assistant):
            return "turn", f"{PERSON}: {user}\n{ASSISTANT}: {assistant}", ""
        case Remember(action=action, content=content, old_text=old, store=store):
            return "memory", f"{store} {_SIGNS[action]} {content or old}", "yellow"
        case Branch(title=title):
            return "branch", title, "magenta"
        case Return():
            return "switch", "back to the trunk", "magenta"
        case Compress(count=count):
            return "compress", f"the context is compressed (no. {count})", "blue"
        case Delegate(task=task, result=result):
            return "delegate", f"{task}\n→ {result}", "cyan"
        case _:
            return "end", step.reason, "red"


class DemoView:
    """Shows the demo's progress; the bars only live where a terminal is."""

    def __init__(self, output: Output) -> None:
        """Prepare the bars."""
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
        """Take the bars away."""
        self._progress.stop()

    def watch(self, news: demo.Shown | demo.Applied) -> None:
        """Show a step, or how far the providers are."""
        if isinstance(news, demo.Shown):
            self._step(news)
        else:
            self._applied(news)

    def _step(self, shown: demo.Shown) -> None:
        if shown.session != self._session:
            self._session = shown.session
            self._output.show(Text(f"\nsession {visible(shown.session)}", style="bold"))
        event, words, colour = told(shown.step)
        for number, line in enumerate(words.split("\n")):
            head = f"{event:<9}" if number == 0 else " " * 9
            self._output.show(Text.assemble((f"  {head} ", "dim"), (visible(line), colour)))

    def _applied(self, applied: demo.Applied) -> None:
        for name, count in applied.by_provider.items():
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(name, total=None)
            self._progress.update(
                self._bars[name], completed=count, total=max(applied.published, 1)
            )

    def conclude(self, result: demo.Result) -> None:
        """Show the answer, the lanes and the timings."""
        output = self._output
        output.show(Text(f"\nsession demo-question\n  asks      {QUESTION}\n", style="bold"))
        output.show(Panel(Text(visible(result.recalled)), title="recalled", title_align="left"))
        lanes = grid("provider", "applied", "published")
        for name, count in result.applied.items():
            lanes.add_row(Text(visible(name)), str(count), str(result.published))
        output.show(lanes)
        times = result.timings
        output.show(
            f"\npublish {_us(times.publish)} (median)   last event applied everywhere after "
            f"{_ms(times.applied)}\nquestion warm after {_ms(times.warm)}   prefetch "
            f"{_us(times.prefetch)} (median)   whole demo {result.seconds:.1f} s"
        )
        output.show(Text("Nothing is left running. Your own: memorybus up", style="dim"))


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"
