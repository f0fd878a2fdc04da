"""``memorybus schema``: the JSON schema of what a command prints."""

import difflib

from cyclopts import App
from memorybus.errors import ConfigError

from memorybus_console.cli.options import CARE, DEFAULT, Common


def register(app: App) -> None:
    """Add this command."""
    app.command(run_schema, name="schema", group=CARE)


def run_schema(*command: str, common: Common = DEFAULT) -> int:
    """Print the JSON schema of what a command prints with --json.

    The schema is derived from the types of the results. The description of a type has the meanings
    of its fields. Without a command, the names of those that have a schema are printed.

    For example:

    - `memorybus schema status`
    - `memorybus schema provider ls | jq '.["$defs"] | keys'`
    """
    from memorybus_console.cli.results import RESULTS, schema_of

    output = common.output()
    name = " ".join(command)
    if not name:
        output.show("\n".join(sorted(RESULTS)))
    elif name in RESULTS:
        output.result(schema_of(name))
    else:
        near = difflib.get_close_matches(name, RESULTS, n=1, cutoff=0.0)[0]
        raise ConfigError(f"no command {name[:100]!r} prints JSON; did you mean {near!r}?")
    return 0
