"""What commands print with ``--json``, held to its schema."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
from memorybus_console.cli.app import build_app
from memorybus_console.cli.schema import commands_with_json, printed_by, schema_of


def closed(schema: Any) -> Any:
    """Return a schema that allows no field which it does not name."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: closed(one) for name, one in schema.items()}
    is_object = found.get("type") == "object" and "properties" in found
    return {"additionalProperties": False} | found if is_object else found


def command_of(words: tuple[str, ...]) -> str:
    """Return the name of a command in the schema."""
    names = commands_with_json(build_app())
    return next(name for name in (" ".join(words[:2]), words[0]) if name in names)


def troubles(words: tuple[str, ...], out: str) -> Iterator[str]:
    """Yield what is wrong with what a command printed."""
    name = command_of(words)
    schema = closed(schema_of(build_app(), name))
    for value in values(name, out):
        if isinstance(value, dict) and value.keys() <= {"error", "message", "next"}:
            yield f"{words}: it failed: {value}"
            continue
        for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
            yield f"{words}: {error.message[:300]} at {list(error.absolute_path)}"


def values(command: str, out: str) -> list[Any]:
    """Return the JSON values that a command printed."""
    try:
        return [json.loads(out)]
    except json.JSONDecodeError:
        if not printed_by(build_app(), command).on_lines:
            raise
        return [json.loads(line) for line in out.splitlines()]
