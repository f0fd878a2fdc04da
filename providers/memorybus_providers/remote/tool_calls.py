"""Describes tools to a model by structs of their arguments, and reads its calls; pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from memorybus.msgspec_types import prepared

from memorybus_providers.tool_schema import argument_schema

T = TypeVar("T", bound=msgspec.Struct)


class RemoteTool(NamedTuple, Generic[T]):
    """A tool of a service.

    Attributes:
        arguments: the struct of its arguments; the model sees the fields and their annotations.
        description: what the model reads about the tool.
        reads: whether it only reads.
    """

    arguments: type[T]
    description: str
    reads: bool = False


class ToolSet(Generic[T]):
    """The tools of a provider by name.

    Attributes:
        reading: the names of the tools that only read.
    """

    def __init__(self, tools: Mapping[str, RemoteTool[T]]) -> None:
        self._tools = MappingProxyType(dict(tools))
        self.reading = frozenset(name for name, tool in tools.items() if tool.reads)

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools as OpenAI functions: ``name``, ``description``, ``parameters``."""
        return [
            {
                "name": name,
                "description": tool.description,
                "parameters": argument_schema(tool.arguments),
            }
            for name, tool in self._tools.items()
        ]

    def parse_arguments(self, name: str, arguments: Mapping[str, Any]) -> T | str:
        """Return a call's arguments, or what is wrong with them in a sentence for the model."""
        tool = self._tools.get(name)
        if tool is None:
            return f"there is no tool {name[:100]!r}; there are {', '.join(self._tools)}"
        try:
            return msgspec.convert(dict(arguments), prepared(tool.arguments))
        except msgspec.ValidationError as error:
            return f"{name}: {error}"
