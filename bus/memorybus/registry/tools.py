"""The tools that a model is offered: one set of names, made from what each provider declares."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

_log = logging.getLogger("memorybus")
MAX_TOOLS = 128  # the most tools that are offered: no model's interface takes more (G10)
MOST_BYTES = 65_536  # size of one provider's declared schemas; larger ones are not registered (G10)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STRANGE = re.compile(r"[^A-Za-z0-9_-]")


class DeclaredTools(msgspec.Struct, frozen=True):
    """What one provider instance declares (stored as JSON)."""

    # OpenAI function schemas as the provider gives them; they may be malformed
    schemas: tuple[Any, ...] = ()
    reading: tuple[str, ...] = ()  # names of the tools that only read


class Tool(msgspec.Struct, frozen=True):
    """One tool as it is offered."""

    offered: str  # the name by which the model calls it
    provider: str  # the instance that it belongs to
    name: str  # the provider's own name for it
    writes: bool  # whether a call is an event, which a replay repeats


class OfferedTools:
    """The tools that are offered, in the order of the providers."""

    def __init__(self, tools: Iterable[tuple[Tool, dict[str, Any]]]) -> None:
        self._tools = {tool.offered: (tool, schema) for tool, schema in tools}

    def schemas(self) -> list[dict[str, Any]]:
        """Return OpenAI function objects: ``name``, ``description``, ``parameters``."""
        return [dict(schema) for _, schema in self._tools.values()]

    def named(self, offered: str) -> Tool | None:
        """Return the tool with an offered name, or None."""
        entry = self._tools.get(offered)
        return entry[0] if entry else None

    def pairs(self) -> list[tuple[Tool, dict[str, Any]]]:
        """Return every tool with its schema."""
        return list(self._tools.values())


def collect_tools(declared: Mapping[str, DeclaredTools]) -> OfferedTools:
    """Return the tools of some providers, in their order; malformed ones are left out and logged.

    If several providers have a tool of one name, each gets its instance's name before it.
    """
    schemas = [
        (provider, tools, schema)
        for provider, tools in declared.items()
        for schema in _well_formed_schemas(provider, tools)
    ]
    counts = Counter(schema["name"] for _, _, schema in schemas)
    found: dict[str, tuple[Tool, dict[str, Any]]] = {}
    for provider, declaration, schema in schemas:
        name = schema["name"]
        label = name if counts[name] == 1 else _prefixed(provider, name)
        if label in found or len(found) >= MAX_TOOLS:
            _log.warning(
                "provider %s: tool %r is not offered: %s", provider, name, _refusal_reason(found)
            )
            continue
        tool = Tool(label, provider, name, name not in declaration.reading)
        found[label] = tool, schema | {"name": label}
    return OfferedTools(found.values())


def _refusal_reason(found: Mapping[str, object]) -> str:
    return f"{MAX_TOOLS} tools are the most" if len(found) >= MAX_TOOLS else "its name is taken"


def _prefixed(provider: str, name: str) -> str:
    return f"{_STRANGE.sub('_', provider)}_{name}"[:64]


def _well_formed_schemas(provider: str, declared: DeclaredTools) -> Iterator[dict[str, Any]]:
    """Yield a provider's schemas as plain function objects, each name once."""
    seen: set[str] = set()
    for given in declared.schemas:
        schema = _unwrap_schema(given)
        name = schema.get("name")
        wrong = _schema_error(schema) or ("its name is there already" if name in seen else "")
        if wrong:
            shown = repr(name)[:64]
            _log.warning("provider %s: tool %s is not offered: %s", provider, shown, wrong)
            continue
        seen.add(schema["name"])
        yield {name: schema[name] for name in ("name", "description", "parameters")}


def _unwrap_schema(given: object) -> dict[str, Any]:
    """Return a schema without OpenAI's outer object; one that names no parameters takes none."""
    if not isinstance(given, dict):
        return {}
    wrapped = given.get("function")
    schema = wrapped if isinstance(wrapped, dict) else given
    if schema.get("parameters") in (None, {}):
        return schema | {"parameters": {"type": "object", "properties": {}}}
    return schema


def _schema_error(schema: Mapping[str, Any]) -> str:
    name, parameters = schema.get("name"), schema.get("parameters")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "a name has 1 to 64 letters, digits, _ and -"
    if not isinstance(schema.get("description"), str):
        return "it has no description"
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        return "its parameters are not a JSON schema of type object"
    return ""
