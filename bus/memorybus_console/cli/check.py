"""``memorybus check``: one line and an exit code, for monitoring plugins."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn

from cyclopts import CycloptsError, Parameter
from memorybus.clock import SYSTEM
from memorybus.errors import LogUnavailable, MemoryBusError

from memorybus_console.cli.answers import show_line, shown
from memorybus_console.cli.options import DEFAULT, Common, RepeatedOption, positive
from memorybus_console.result import Presentation
from memorybus_console.views.output import Output
from memorybus_console.views.presenter import present
from memorybus_console.views.render import line

if TYPE_CHECKING:
    from memorybus.health.verdict import Verdict

    from memorybus_console.operations.notification import Notifier

NAME = "check"


@shown
def run_check(
    *,
    notify: Annotated[
        RepeatedOption,
        Parameter(
            help="Also notify people: an Apprise URL, or the environment variable that holds it."
        ),
    ] = None,
    every: Annotated[
        float | None,
        Parameter(validator=positive, help="Look again after so many seconds, without end."),
    ] = None,
    common: Common = DEFAULT,
) -> "Presentation[Verdict] | None":
    """Show in one line whether all is well, as Nagios, Icinga and their like want it.

    It reads and changes nothing. Exit codes: 0 all is well, 1 a warning, 2 something critical (so
    is a Redis that is away or refuses us), 3 unknown, because settings or options are wrong.

    With --notify people are notified of a verdict that is not OK; with --every they are notified
    each time that the verdict has changed and two looks in a row agree.

    For example:

    - `memorybus check`
    - `memorybus check --json | jq '.findings[].remedy'`
    - `memorybus check --notify MEMORY_HOOK --every 60`
    """
    if every:
        _check_again_and_again(common, notify or [], every)
    verdict = _judge(common)
    if notify and verdict.state != "OK":
        _notify(_notifier(common, notify), verdict, common.output())
    return presented(verdict)


def _judge(common: Common) -> "Verdict":
    from memorybus.health.monitor import read_status, spool_status
    from memorybus.health.verdict import judge_status, unknown_verdict, unreachable_verdict

    try:
        settings = common.settings()
        try:
            return judge_status(read_status(settings), settings.providers, SYSTEM.now_ms())
        except LogUnavailable as error:
            return unreachable_verdict(error, spool_status(settings))
    except MemoryBusError as error:
        return unknown_verdict(error)


def _check_again_and_again(common: Common, targets: Sequence[str], seconds: float) -> NoReturn:
    """Print a verdict at each look, and notify people of changes, until Ctrl-C."""
    from memorybus_console.operations.notification import VerdictChange

    output, change = common.output(), VerdictChange()
    notifier = _notifier(common, targets) if targets else None
    while True:
        verdict = _judge(common)
        show_line(output, presented(verdict))
        if change.is_news(verdict) and (notifier is None or _notify(notifier, verdict, output)):
            change.note_sent(verdict)
        SYSTEM.sleep(seconds)


def _notifier(common: Common, targets: Sequence[str]) -> "Notifier":
    from memorybus.config.settings import load_secrets

    from memorybus_console.operations.notification import Notifier

    return Notifier(load_secrets(common.settings()), targets)


def _notify(notifier: "Notifier", verdict: "Verdict", output: Output) -> bool:
    """Notify people; return whether every address took it. The next look tries again if not."""
    delivered = notifier.send(verdict)
    if not delivered:
        output.note("the notification was not delivered to every address", "red")
    return delivered


def is_check(words: Sequence[str]) -> bool:
    """Return whether a command line calls `check`, even if it cannot be parsed."""
    return list(words[:1]) == [NAME]


def report_misuse(error: CycloptsError, *, as_json: bool) -> int:
    """Report wrong options as "unknown" and return 3: a plugin's code 2 would mean "critical"."""
    from memorybus.health.verdict import unknown_verdict

    return present(Output(json=as_json), presented(unknown_verdict(error)))


def presented(verdict: "Verdict") -> "Presentation[Verdict]":
    """Return a verdict with its line and its exit code."""
    return Presentation(verdict, [line(verdict.line)], code=verdict.code)
