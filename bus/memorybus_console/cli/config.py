"""``memorybus config``: show the settings and their origins, and make the token of the page."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from memorybus.config.settings import read_layers
from memorybus.errors import ConfigError, install_command
from memorybus.ids import NewSecret, new_secret

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, Common, settings_file
from memorybus_console.result import Presentation, Remark
from memorybus_console.views.render import settings_source

if TYPE_CHECKING:
    from memorybus_console.operations.settings import EffectiveSetting, PageToken, Reference

MIN_TOKEN_CHARS = 16  # the fewest characters of a token that a person chose


@shown
def run_config_show(*, common: Common = DEFAULT) -> "Presentation[list[EffectiveSetting]]":
    """Show every setting with its value, its origin and its meaning; credentials are masked.

    The origin is `default`, the file that was read, a variable or an option; each of these
    overrides those before it.

    For example:

    - `memorybus config show`
    - `memorybus config show --json | jq '.[] | select(.origin != "default")'`
    """
    from memorybus_console.operations.settings import effective_settings
    from memorybus_console.views.presenter import table_of

    settings = effective_settings(read_layers(**common.overrides()))
    source = Remark(f"settings: {settings_source(settings_file())}")
    return Presentation(settings, [table_of(settings)], [source])


@shown
def run_config_reference(*, common: Common = DEFAULT) -> "Reference":
    """Print a settings file in which every setting is a comment: meaning, default and unit.

    For example:

    - `memorybus config reference > memorybus.toml`
    - `memorybus config reference --json | jq '.settings[].name'`
    """
    from memorybus_console.operations.settings import reference

    return reference()


@shown
def run_config_page_token(
    *,
    stdin: Annotated[
        bool, Parameter(negative="", help="Read the token from standard input; else make one.")
    ] = False,
    common: Common = DEFAULT,
) -> "PageToken":
    """Make a token for `memorybus serve`, and its hash for the settings. Nothing is written.

    Whoever has the token can sign in to the page and act there. The settings hold only its hash.

    For example:

    - `memorybus config page-token`
    - `memorybus config page-token --stdin < token.txt`
    """
    from memorybus_console.operations.settings import PageToken

    hashed, new_secret = _load_token_functions()
    token = sys.stdin.readline().strip() if stdin else new_secret()
    if len(token) < MIN_TOKEN_CHARS:
        raise ConfigError(
            f"the token has {len(token)} characters, at least {MIN_TOKEN_CHARS} are needed; leave "
            f"out --stdin to have one made"
        )
    return PageToken(None if stdin else token, hashed(token))


def _load_token_functions() -> tuple[Callable[[str], str], NewSecret]:
    try:
        from memorybus_console.web.access import hash_token
    except ImportError as error:
        raise ConfigError(f"the page needs argon2-cffi; run: {install_command('web')}") from error
    return hash_token, new_secret
