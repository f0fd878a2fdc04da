"""What commands print with ``--json``, held to its schema."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
from memorybus_console.cli.results import RESULTS, schema_of


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
    return next(name for name in (" ".join(words[:2]), words[0]) if name in RESULTS)


def troubles(words: tuple[str, ...], out: str) -> Iterator[str]:
    """Yield what is wrong with what a command printed."""
    name = command_of(words)
    schema = closed(schema_of(name))
    for value in values(out, lines=RESULTS[name].lines):
        if isinstance(value, dict) and value.keys() <= {"error", "message", "next"}:
            yield f"{words}: it failed: {value}"
            continue
        for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
            yield f"{words}: {error.message[:300]} at {list(error.absolute_path)}"


def values(out: str, *, lines: bool) -> list[Any]:
    """Return the JSON values of an output."""
    try:
        return [json.loads(out)]
    except json.JSONDecodeError:
        if not lines:
            raise
        return [json.loads(line) for line in out.splitlines()]
