"""``memorybus schema``: the JSON schema of what a command prints, from the type that it returns."""

import ast
import difflib
import inspect
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from pkgutil import resolve_name
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from cyclopts import App, Parameter
from memorybus.errors import ConfigError

from memorybus_console.cli.answers import shown
from memorybus_console.cli.failures import Failed
from memorybus_console.cli.options import DEFAULT, Common
from memorybus_console.result import Presentation, Prints, Stepwise
from memorybus_console.views.render import json_text


@shown
def run_schema(
    *command: str,
    openapi: Annotated[
        bool, Parameter(negative="", help="Print the OpenAPI document of `serve --api`.")
    ] = False,
    common: Common = DEFAULT,
) -> "Presentation[dict[str, Any] | list[str]]":
    """Print the JSON schema of what a command prints with --json.

    The schema is derived from the types of the results. The description of a type has the
    meanings of its fields. Without a command, the names of those that have a schema are
    printed.

    For example:

    - `memorybus schema status`
    - `memorybus schema --openapi > openapi.json`
    - `memorybus schema provider ls | jq '.["$defs"] | keys'`
    """
    if openapi:
        from memorybus_console.gateway.routes import openapi_document

        document = openapi_document(version("memorybus"))
        return Presentation(document, [json_text(document)])
    from memorybus_console.cli.app import build_app

    app = build_app()
    if not command:
        names = sorted(commands_with_json(app))
        return Presentation(names, names)
    schema = schema_of(app, " ".join(command))
    return Presentation(schema, [json_text(schema)])


class Printed(NamedTuple):
    """What a command prints with ``--json``: one of these types, or many of them, one a line."""

    kinds: Sequence[Any]
    on_lines: bool = False


def schema_of(app: App, command: str) -> dict[str, Any]:
    """Return the JSON schema of what a command prints; a command that fails prints `Failed`."""
    printed = printed_by(app, command)
    kinds, types = msgspec.json.schema_components([*printed.kinds, Failed])
    where = "each line of standard output" if printed.on_lines else "standard output"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{where} of `memorybus {command} --json`",
        "anyOf": list(kinds),
        "$defs": {name: types[name] for name in sorted(types)},
    }


def printed_by(app: App, command: str) -> Printed:
    """Return what a command prints with ``--json``."""
    commands = commands_with_json(app)
    if command not in commands:
        near = difflib.get_close_matches(command, commands, n=1, cutoff=0.0)[0]
        raise ConfigError(f"no command {command[:100]!r} prints JSON; did you mean {near!r}?")
    return _printed(_return_type(commands[command]))


def commands_with_json(app: App) -> dict[str, Callable[..., Any]]:
    """Return the functions of the commands that `shown` decorates, by the command's name."""
    commands = dict(_commands(app))
    return {name: inspect.unwrap(run) for name, run in commands.items() if _is_shown(run)}


def _commands(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Callable[..., Any]]]:
    if app.default_command is not None:
        yield " ".join(path), app.default_command
    for name in app:
        if not name.startswith("-"):
            yield from _commands(app[name], (*path, name))


def _is_shown(run: Callable[..., Any]) -> bool:
    return hasattr(run, "__wrapped__")


def _return_type(run: Callable[..., Any]) -> Any:
    """Return the type that a command returns, also if its module imports it for types alone."""
    module = import_module(run.__module__)
    names = vars(module) | _imported_for_types(module)
    return get_type_hints(run, names, include_extras=True)["return"]


def _imported_for_types(module: ModuleType) -> dict[str, Any]:
    """Import what a module imports below ``if TYPE_CHECKING``."""
    tree = ast.parse(inspect.getsource(module))
    blocks = (node for node in tree.body if isinstance(node, ast.If))
    imports = (node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom))
    return {
        alias.name: resolve_name(f"{node.module}.{alias.name}")
        for node in imports
        for alias in node.names
    }


def _printed(kind: Any) -> Printed:
    """Return what stands for a return type in JSON; what a command shows itself has no value."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        own = next((each.kind for each in arguments if isinstance(each, Prints)), arguments[0])
        return _printed(own)
    if origin is Iterator:
        return Printed(_printed(arguments[0]).kinds, on_lines=True)
    if origin in (Union, UnionType):
        each = [_printed(argument) for argument in arguments]
        kinds = [kind for printed in each for kind in printed.kinds]
        return Printed(kinds, any(printed.on_lines for printed in each))
    if origin in (Presentation, Stepwise):
        return _printed(arguments[0])
    return Printed(() if kind is NoneType else (kind,))
