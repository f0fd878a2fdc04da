"""``memorybus provider``: list the instances."""

from typing import TYPE_CHECKING

from cyclopts import App
from rich.table import Table
from rich.text import Text

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, OPERATE, Common
from memorybus_console.cli.providers.provider_life import (
    run_move,
    run_pause,
    run_remove,
    run_resume,
    run_retry_now,
)
from memorybus_console.cli.providers.provider_setup import run_setup
from memorybus_console.cli.providers.provider_trial import run_test
from memorybus_console.result import Presentation
from memorybus_console.views.render import grid
from memorybus_console.views.safe import one_line

if TYPE_CHECKING:
    from memorybus_console.operations.providers.inventory import ListedProvider


def register(app: App) -> None:
    """Add this group's commands."""
    provider = App(name="provider", help="Provider instances and their homes.", group=OPERATE)
    provider.command(run_provider_ls, name="ls")
    provider.command(run_move, name="move")
    provider.command(run_setup, name="setup")
    provider.command(run_test, name="test")
    provider.command(run_pause, name="pause")
    provider.command(run_resume, name="resume")
    provider.command(run_retry_now, name="retry-now")
    provider.command(run_remove, name="remove")
    app.command(provider)


@shown
def run_provider_ls(*, common: Common = DEFAULT) -> "Presentation[list[ListedProvider]]":
    """List the provider instances: kind, delivery class, home, lanes, backlog.

    For example:

    - `memorybus provider ls`
    - `memorybus provider ls --json | jq '.[] | select(.here == false)'`
    """
    from memorybus_console.operations.providers.inventory import list_instances

    instances = list_instances(common.settings())
    return Presentation(instances, [_table(instances)])


def _table(providers: "list[ListedProvider]") -> Table:
    table = grid(
        "provider", "kind", "delivery", "home", "lanes", "backlog", "note", texts=("note",)
    )
    for provider in providers:
        cells = (
            *(provider.name, provider.kind, provider.delivery or "never served", _home(provider)),
            *(
                f"{provider.lanes_owned}/{provider.lanes}",
                str(provider.backlog),
                _note_text(provider),
            ),
        )
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    return table


def _note_text(provider: "ListedProvider") -> str:
    """Return what serves in the instance's place, whether it is paused, and its own note."""
    paused = f"paused: {provider.paused}" if provider.paused else ""
    live = f"{provider.live} serves in its place" if provider.live else ""
    return "; ".join(part for part in (live, paused, provider.note) if part)


def _home(provider: "ListedProvider") -> str:
    from memorybus_console.operations.providers.inventory import describe_home

    if provider.home is None:
        return "anywhere" if provider.placement == "shared" else "none yet"
    return "here" if provider.here else describe_home(provider.home)
