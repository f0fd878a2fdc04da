"""``memorybus config``: show the settings and their origins, and make the token of the page."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypedDict

from cyclopts import App, Parameter
from memorybus.config.settings import FILE_NAME, read_layers
from memorybus.errors import ConfigError, install_command
from memorybus.ids import NewSecret, new_secret
from rich.text import Text

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, OPERATE, Common, settings_file
from memorybus_console.result import Prints
from memorybus_console.views.render import grid, settings_source
from memorybus_console.views.safe import visible

if TYPE_CHECKING:
    from memorybus.config.origins import EffectiveSetting

MIN_TOKEN_CHARS = 16
"""The fewest characters of a token that a person chose."""


class PageToken(TypedDict):
    """A token, null if the caller chose it, and its hash for the settings."""

    token: str | None
    page_token: str


def register(app: App) -> None:
    """Add this group's commands."""
    config = App(name="config", help="Settings, and where they come from.", group=OPERATE)
    config.command(run_config_show, name="show")
    config.command(run_config_page_token, name="page-token")
    app.command(config)


@shown
def run_config_show(
    *, common: Common = DEFAULT
) -> "Annotated[int, Prints(list[EffectiveSetting])]":
    """Show every setting with its value and its origin; credentials are masked.

    The origin is `default`, the file that was read, a variable or an option; each of these
    overrides those before it.

    For example:

    - `memorybus config show`
    - `memorybus config show --json | jq '.[] | select(.origin != "default")'`
    """
    from memorybus.config.origins import effective_settings

    output = common.output()
    found = effective_settings(read_layers(**common.overrides()))
    if output.json:
        output.result(found)
        return 0
    table = grid("setting", "value", "origin", texts=("value", "origin"))
    for one in found:
        cells = (one.name, one.value, one.origin)
        style = "dim" if one.origin == "default" else ""
        table.add_row(*(Text(visible(cell), style=style) for cell in cells))
    output.show(table)
    output.note(f"settings: {settings_source(settings_file())}")
    return 0


@shown
def run_config_page_token(
    *,
    stdin: Annotated[
        bool, Parameter(negative="", help="Read the token from standard input; else make one.")
    ] = False,
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(PageToken)]":
    """Make a token for `memorybus serve`, and its hash for the settings. Nothing is written.

    Whoever has the token can sign in to the page and act there. The settings hold only its hash.

    For example:

    - `memorybus config page-token`
    - `memorybus config page-token --stdin < token.txt`

    Parameters
    ----------
    json
        Print one JSON object: token (null with --stdin), page_token.
    """
    hashed, new_secret = _load_token_functions()
    token = sys.stdin.readline().strip() if stdin else new_secret()
    if len(token) < MIN_TOKEN_CHARS:
        raise ConfigError(
            f"the token has {len(token)} characters, at least {MIN_TOKEN_CHARS} are needed; leave "
            f"out --stdin to have one made"
        )
    output = common.output()
    if output.json:
        output.result({"token": None if stdin else token, "page_token": hashed(token)})
        return 0
    if not stdin:
        output.show(f"the token, shown this once: {token}")
    output.show(f"for {FILE_NAME}:")
    output.show(f'page_token = "{hashed(token)}"')
    return 0


def _load_token_functions() -> tuple[Callable[[str], str], NewSecret]:
    try:
        from memorybus_console.web.access import hash_token
    except ImportError as error:
        raise ConfigError(f"the page needs argon2-cffi; run: {install_command('web')}") from error
    return hash_token, new_secret
