"""Rules of what a provider declares: delivery class, capabilities, hooks, tools and options."""

import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import msgspec
from memorybus.events import EVENT_TYPES, ToolCalled

from memorybus_providers.base import (
    Capabilities,
    Delivery,
    MemoryProvider,
    Placement,
    TransactionalProvider,
)
from memorybus_providers.contract.rules import Rules, require
from memorybus_providers.contract.samples import feed, steps
from memorybus_providers.dispatch import HOOKS

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OPTION_TYPES = ("", "text", "number", "flag", "list")
_DIALOGUE_PARTS: Mapping[str, Any] = MappingProxyType(
    {"choices": (list, tuple), "hint": str, "secret": bool, "required": bool}
)
_ARGUMENT_COUNTS = {
    **dict.fromkeys(HOOKS.values(), 2),
    "prefetch": 2,
    "retract": 2,
    "handle_tool_call": 3,
    "forget": 1,
    "export": 1,
    "curated": 1,
    "sync_turns": 1,
    "health": 1,
}


class DeclaredRules(Rules):
    """Declarations are well formed and agree with the code."""

    def test_declares_kind_delivery_and_placement(self, tmp_path: Path) -> None:
        """The class names its kind, and a delivery class and placement that exist (G4)."""
        provider = self.make_provider(tmp_path)
        kind = getattr(provider, "kind", None)
        require(isinstance(kind, str) and kind, f"kind must be a name, not {kind!r}")
        require(
            provider.delivery in get_args(Delivery),
            f"delivery {provider.delivery!r} is none of {get_args(Delivery)}",
        )
        require(
            provider.placement in get_args(Placement),
            f"placement {provider.placement!r} is none of {get_args(Placement)}",
        )

    def test_delivery_agrees_with_the_base_class(self, tmp_path: Path) -> None:
        """A provider is declared transactional exactly if it is a TransactionalProvider (G4)."""
        provider = self.make_provider(tmp_path)
        is_one = isinstance(provider, TransactionalProvider)
        says_so = provider.delivery == "transactional"
        require(
            is_one == says_so,
            f"delivery is {provider.delivery!r}, but TransactionalProvider is "
            f"{'a' if is_one else 'no'} base class",
        )

    def test_capabilities_agree_with_the_overridden_hooks(self, tmp_path: Path) -> None:
        """A declared event has its hook, and an overridden hook is declared and so called."""
        provider = self.make_provider(tmp_path)
        can = provider.capabilities
        require(isinstance(can, Capabilities), f"capabilities must be Capabilities, not {can!r}")
        unknown = can.handles - set(EVENT_TYPES)
        require(not unknown, f"handles names what is no event: {unknown}")
        for event, hook in HOOKS.items():
            _require_agreement(provider, hook, event in can.handles, f"{event.__name__} in handles")
        _require_agreement(provider, "prefetch", can.recall, "recall")
        _require_agreement(provider, "retract", can.retracts, "retracts")
        _require_agreement(provider, "forget", can.forgets, "forgets")
        _require_agreement(provider, "export", can.exports, "exports")
        _require_agreement(provider, "curated", can.curates, "curates")
        _require_agreement(
            provider, "handle_tool_call", can.tools or ToolCalled in can.handles, "tools"
        )
        require(
            can.tools == bool(provider.get_tool_schemas()),
            f"tools is {can.tools}, get_tool_schemas returns {provider.get_tool_schemas()!r}",
        )

    def test_hooks_take_what_they_are_called_with(self, tmp_path: Path) -> None:
        """Every hook can be called with its positional arguments (event, context)."""
        provider = self.make_provider(tmp_path)
        for name, count in _ARGUMENT_COUNTS.items():
            signature = inspect.signature(getattr(provider, name))
            try:
                signature.bind(*range(count))
            except TypeError as error:
                require(False, f"{name}{signature} is called with {count} arguments: {error}")

    def test_tool_schemas_are_valid_before_open(self, tmp_path: Path) -> None:
        """Tools have different names, descriptions and object parameters, already before open."""
        schemas = self.make_provider(tmp_path).get_tool_schemas()
        names = [_check_tool(schema) for schema in schemas]
        require(len(names) == len(set(names)), f"tool names repeat: {names}")

    def test_reading_tools_are_tools(self, tmp_path: Path) -> None:
        """Names declared as those of tools are: a misspelt reading tool would be a writer."""
        provider = self.make_provider(tmp_path)
        names = {_check_tool(schema) for schema in provider.get_tool_schemas()}
        can = provider.capabilities
        strangers = (can.reading_tools | can.forgetting_tools) - names
        require(not strangers, f"the capabilities name what is no tool: {sorted(strangers)}")

    def test_config_schema_is_well_formed(self, tmp_path: Path) -> None:
        """Every option has its own key and a description, and is plain data."""
        schema = self.make_provider(tmp_path).get_config_schema() or ()
        for field in schema:
            for part in ("key", "description"):
                value = field.get(part)
                require(isinstance(value, str) and value, f"option without {part}: {field!r}")
            _require_json(field, f"option {field['key']!r}")
            _check_dialogue_parts(field)
        keys = [field["key"] for field in schema]
        require(len(keys) == len(set(keys)), f"option keys repeat: {keys}")

    def test_shutdown_may_come_twice_or_without_open(self, tmp_path: Path) -> None:
        """Shutdown is safe at any time; afterwards the same state can be opened again."""
        provider = self.make_provider(tmp_path)
        _require_quiet(provider, "before open")
        provider.open()
        _require_quiet(provider, "once")
        _require_quiet(provider, "twice")
        with self.opened(tmp_path):
            pass

    def test_backup_paths_exist_after_a_write(self, tmp_path: Path) -> None:
        """A local provider names the files that contain its state, and they exist."""
        with self.opened(tmp_path) as provider:
            feed(provider, steps(self.remember(provider, "backup")))
            paths = provider.backup_paths()
            require(
                paths or provider.placement == "shared",
                "a local provider must name its files in backup_paths",
            )
            missing = [path for path in paths if not path.exists()]
            require(not missing, f"backup_paths names what is not there: {missing}")


def _require_agreement(provider: MemoryProvider, hook: str, declared: bool, what: str) -> None:
    overridden = getattr(type(provider), hook) is not getattr(MemoryProvider, hook)
    require(
        overridden == declared,
        f"{hook} is {'' if overridden else 'not '}overridden, but capabilities say "
        f"{'' if declared else 'not '}{what}",
    )


def _check_tool(schema: Mapping[str, Any]) -> str:
    tool = schema.get("function", schema)
    name, parameters = tool.get("name"), tool.get("parameters")
    require(isinstance(name, str) and _TOOL_NAME.fullmatch(name), f"bad tool name {name!r}")
    require(tool.get("description"), f"tool {name!r} has no description")
    require(
        isinstance(parameters, Mapping) and parameters.get("type") == "object",
        f"tool {name!r}: parameters must be a JSON schema of type object, not {parameters!r}",
    )
    properties: Mapping[str, Any] = parameters.get("properties", {})
    required: Sequence[str] = parameters.get("required", ())
    strangers = set(required) - set(properties)
    require(not strangers, f"tool {name!r} requires what it does not describe: {strangers}")
    _require_json(schema, f"tool {name!r}")
    return str(name)


def _check_dialogue_parts(field: Mapping[str, Any]) -> None:
    """Check the parts of an option that a set-up dialogue uses."""
    key = field["key"]
    for part, kind in _DIALOGUE_PARTS.items():
        value = field.get(part)
        require(
            value is None or isinstance(value, kind),
            f"option {key!r}: {part} must be {kind}, not {value!r}",
        )
    said, choices = field.get("type", ""), field.get("choices") or ()
    require(said in _OPTION_TYPES, f"option {key!r}: type {said!r} is none of {_OPTION_TYPES}")
    default = field.get("default")
    known = not choices or default in (None, "") or default in choices
    require(known, f"option {key!r}: the default {default!r} is none of its choices")


def _require_json(value: object, what: str) -> None:
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError) as error:
        require(False, f"{what} is not plain data: {error}")


def _require_quiet(provider: MemoryProvider, when: str) -> None:
    try:
        provider.shutdown()
    except Exception as error:
        require(False, f"shutdown {when} raised {error!r}")
