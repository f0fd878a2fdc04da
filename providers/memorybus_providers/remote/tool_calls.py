"""Tools as structs of arguments: what a model is told of them, and how its calls are read; pure."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


def schemas(
    arguments: Mapping[str, type[T]], descriptions: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return tools as OpenAI function objects: ``name``, ``description``, ``parameters``."""
    return [
        {"name": name, "description": descriptions[name], "parameters": _parameters(kind)}
        for name, kind in arguments.items()
    ]


def parsed(kinds: Mapping[str, type[T]], tool: str, arguments: Mapping[str, Any]) -> T | str:
    """Return a call's arguments, or what is wrong with them in a sentence for the model."""
    kind = kinds.get(tool)
    if kind is None:
        return f"there is no tool {tool!r}; there are {', '.join(kinds)}"
    try:
        return msgspec.convert(dict(arguments), kind)
    except msgspec.ValidationError as error:
        return f"{tool}: {error}"


def _parameters(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a call's arguments, without what only documents the code."""
    (schema,), definitions = msgspec.json.schema_components([kind])
    body = dict(definitions[str(schema["$ref"]).rsplit("/", 1)[-1]])
    return {name: value for name, value in body.items() if name not in {"title", "description"}}
