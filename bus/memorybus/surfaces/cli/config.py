"""``memorybus config``: which settings hold, and why."""

from cyclopts import App
from rich.table import Table
from rich.text import Text

from memorybus.config.settings import layers
from memorybus.surfaces.cli.options import CARE, DEFAULT, Common, settings_file
from memorybus.surfaces.views.render import read_from
from memorybus.surfaces.views.safe import visible


def register(app: App) -> None:
    """Add this group's commands."""
    config = App(name="config", help="Settings, and where they come from.", group=CARE)
    config.command(run_config_show, name="show")
    app.command(config)


def run_config_show(*, common: Common = DEFAULT) -> int:
    """Show every setting with its value and its origin; credentials are masked.

    The origin is `default`, the file that was read, a variable or an option. Later ones of these
    go before earlier ones.

    For example:

    - `memorybus config show`
    - `memorybus config show --json | jq '.[] | select(.origin != "default")'`
    """
    from memorybus.config.origins import known

    output = common.output()
    found = known(layers(**common.given()))
    if output.json:
        output.result(found)
        return 0
    table = Table("setting", "value", "origin", box=None, pad_edge=False)
    for one in found:
        cells = (one.name, one.value, one.origin)
        style = "dim" if one.origin == "default" else ""
        table.add_row(*(Text(visible(cell), style=style, overflow="fold") for cell in cells))
    output.show(table)
    output.note(f"settings: {read_from(settings_file())}")
    return 0
