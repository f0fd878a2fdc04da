"""``memorybus verify`` and ``memorybus diff``: compare a state with history, or with another."""

from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError

from memorybus_console.cli.answers import shown
from memorybus_console.cli.failures import show_bar
from memorybus_console.cli.options import (
    DEFAULT,
    NO_SCOPE_OPTIONS,
    Common,
    InstanceOption,
    ScopeOptions,
    operator,
    positive,
    to_absolute_time,
)
from memorybus_console.operations.settings import scope_of
from memorybus_console.result import Presentation
from memorybus_console.views.render import line, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from memorybus_console.operations.rebuild.comparison import RecallDifference
    from memorybus_console.operations.rebuild.verify import VerifyResult

_INTERRUPTED = "interrupted: the live state is unchanged; the copy for the comparison is dropped"


@shown
def run_verify(
    provider: InstanceOption,
    /,
    *,
    until: Annotated[
        str,
        Parameter(
            converter=to_absolute_time,
            help="Compare with the state of this moment (an ISO time, UTC if it names no zone, how "
            "long ago as in 2h, p07:1234, or an event's id); whatever was written since differs.",
        ),
    ] = "",
    common: Common = DEFAULT,
) -> "VerifyResult":
    """Check whether a provider's live state is what the history gives; exit code 1 if it is not.

    A copy is filled from the history and compared by digest. If a key differs, the live lanes pause
    for a moment, so that both are compared at the same position; recalls continue.

    For example:

    - `memorybus verify holographic`
    - `memorybus verify holographic --until 2h --json`
    """
    from memorybus_console.operations.rebuild.rebuild import open_rebuilder
    from memorybus_console.operations.rebuild.verify import verify_provider

    by = operator()
    with (
        show_bar(common.output(), "verify", "places of the history", _INTERRUPTED) as progress,
        open_rebuilder(common.settings(), provider, "verification", by, progress) as rebuilder,
    ):
        return verify_provider(rebuilder, provider, until, by)


@shown
def run_diff(
    first: Annotated[str, Parameter(help="An instance of a provider.")],
    second: Annotated[str, Parameter(help="Another instance, of this provider or another.")],
    /,
    *,
    query: Annotated[
        list[str] | None,
        Parameter(negative="", consume_multiple=False, help="A question; may be repeated."),
    ] = None,
    queries: Annotated[Path | None, Parameter(help="A file with a question on each line.")] = None,
    scope_options: ScopeOptions = NO_SCOPE_OPTIONS,
    budget: Annotated[
        int, Parameter(help="Characters that each may recall.", validator=positive)
    ] = 2_000,
    common: Common = DEFAULT,
) -> "Presentation[list[RecallDifference]]":
    """Show what two providers, or generations or copies of one, would recall, side by side.

    For example:

    - `memorybus diff holographic holographic@1 --query "When does the inspector come?"`
    - `memorybus diff holographic holographic@1 --queries questions.txt --json`
    """
    from memorybus.jobs.inspect import InstanceInspector
    from memorybus.recall.model import RecallRequest

    from memorybus_console.operations.copies.generations import provider_of
    from memorybus_console.operations.rebuild.comparison import compare_recalls
    from memorybus_console.operations.stores import checked_stores

    settings = common.settings()
    questions = _questions(query, queries)
    with checked_stores(settings) as stores:
        view = stores.instances.read_view()
        one, two = ((provider_of(n, view, settings.providers), n) for n in (first, second))
    scope = msgspec.structs.asdict(scope_options.filter_for(scope_of(settings)))
    requests = [
        RecallRequest(query=each, **scope, budget=budget, detail=True) for each in questions
    ]
    differences = compare_recalls(InstanceInspector(settings, SYSTEM), (one, two), requests)
    return Presentation(differences, (part for each in differences for part in _side_by_side(each)))


def _questions(query: list[str] | None, file: Path | None) -> list[str]:
    asked = [question for question in [*(query or ()), *_read_lines(file)] if question.strip()]
    if not asked:
        raise ConfigError("give a question: --query TEXT, or --queries FILE")
    return asked


def _read_lines(file: Path | None) -> list[str]:
    try:
        return [] if file is None else file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from error


def _side_by_side(difference: "RecallDifference") -> "Iterator[RenderableType]":
    yield line(f"{difference.query}{'' if difference.same else '  (differs)'}")
    sides = (difference.first, difference.second)
    names = [side.instance for side in sides]
    rows = zip_longest(*(side.texts for side in sides), fillvalue="")
    yield table(names, (map(line, texts) for texts in rows), texts=names)
