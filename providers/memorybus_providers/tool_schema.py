"""The arguments of a tool as a model is told of them; pure."""

from typing import Any

import msgspec


def argument_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without what only documents the code."""
    (schema,), definitions = msgspec.json.schema_components([kind])
    body = dict(definitions[str(schema["$ref"]).rsplit("/", 1)[-1]])
    return {name: value for name, value in body.items() if name not in {"title", "description"}}
