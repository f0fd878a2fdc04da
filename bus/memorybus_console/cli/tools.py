"""``memorybus tools``: list the tools that providers offer a model, and call one."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from memorybus.clock import SYSTEM
from memorybus.ids import new_id
from memorybus.registry import tools
from rich.text import Text

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import (
    DEFAULT,
    AgentOption,
    Common,
    UserOption,
    WorkspaceOption,
    positive,
)
from memorybus_console.result import HIDDEN, TEXT, Column, IfEmpty, Presentation
from memorybus_console.views.render import json_text

SESSION = "memorybus-tools"  # the session of these calls, unless --session names another


_TIMEOUT = 10.0

_NO_TOOLS = IfEmpty("no provider has declared tools yet; workers declare them: memorybus up")


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool as a model is offered it; `parameters` is a JSON schema."""

    name: Annotated[str, Column(title="tool")]
    provider: str
    tool: Annotated[str, HIDDEN]
    writes: Annotated[bool, Column(title="does", words=("reads", "writes"))]
    description: Annotated[str, TEXT]
    parameters: Annotated[dict[str, Any], HIDDEN]


def check_pairs(_: Any, given: Sequence[str]) -> None:
    """Validate arguments that read key=value."""
    for pair in given:
        if pair.find("=") < 1:
            raise ValueError(f"{pair!r} must read key=value.")


def check_object(_: Any, text: str) -> None:
    try:
        msgspec.json.decode(text or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"It is no JSON object: {error}") from error


ArgumentsOption = Annotated[
    tuple[str, ...],
    Parameter(
        help="An argument as key=value; may be repeated.", negative="", validator=check_pairs
    ),
]
JsonArgumentsOption = Annotated[
    str, Parameter(help="All arguments as one JSON object.", validator=check_object)
]
ResultTimeoutOption = Annotated[
    float, Parameter(help="Seconds to wait for the result.", validator=positive)
]


@shown
def run_ls(*, common: Common = DEFAULT) -> Annotated[list[OfferedTool], _NO_TOOLS]:
    """List the tools of all registered providers, by the names a model calls them.

    For example:

    - `memorybus tools ls`
    - `memorybus tools ls --json`
    """
    from memorybus.registry.tools_note import fetch_declared_tools

    offered = tools.collect_tools(fetch_declared_tools(common.settings()))
    return [
        OfferedTool(
            name=tool.offered,
            provider=tool.provider,
            tool=tool.name,
            writes=tool.writes,
            description=schema["description"],
            parameters=schema["parameters"],
        )
        for tool, schema in offered.pairs()
    ]


@shown
def run_call(
    name: str,
    /,
    *,
    arg: ArgumentsOption = (),
    json_args: JsonArgumentsOption = "",
    user: UserOption = None,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
    session: Annotated[str, Parameter(help="On behalf of this session.")] = SESSION,
    timeout: ResultTimeoutOption = _TIMEOUT,
    common: Common = DEFAULT,
) -> Presentation[dict[str, Any]]:
    """Call a tool as a model would; a tool that writes leaves an event in the log.

    For example:

    - `memorybus tools call memory_search --arg query="brass key" --user ana`
    - `memorybus tools call memory_add --json-args '{"content": "The key is under the pot."}'`
    """
    from memorybus.agent.client import MemoryBus
    from memorybus.registry.tools_note import ToolsNote

    settings = common.settings()
    ToolsNote(settings, SYSTEM, new_id).refresh()
    with MemoryBus.connect(settings) as bus:
        arguments = build_arguments(arg, json_args, bus.tools(), name)
        asking = bus.session(session, user=user, agent=agent, workspace=workspace, warm=False)
        result = asking.call_tool(name, arguments, timeout=timeout)
    return Presentation(result, [Text(json_text(result))], code=int(result.get("ok") is False))


def build_arguments(
    given_pairs: Sequence[str], json_args: str, offered: tools.OfferedTools, name: str
) -> dict[str, Any]:
    """Return a call's arguments; the value of a pair is read according to its parameter's type."""
    given: dict[str, Any] = msgspec.json.decode(json_args or "{}")
    schema = next((each for tool, each in offered.pairs() if tool.offered == name), {})
    properties = schema.get("parameters", {}).get("properties", {})
    for pair in given_pairs:
        key, _, text = pair.partition("=")
        given[key] = _value(text, properties.get(key, {}))
    return given


def _value(text: str, parameter: Any) -> Any:
    """Return a text, or the number, list and so on that the parameter's type asks for."""
    kind = parameter.get("type", "string") if isinstance(parameter, Mapping) else "string"
    if kind == "string":
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text  # the provider says what is wrong with it
