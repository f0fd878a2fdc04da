"""``memorybus mcp``: serve memory to the host of a model, such as Claude Code or Cursor."""

from contextlib import suppress
from typing import Annotated

from cyclopts import Parameter
from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError, LogError, install_command
from memorybus.ids import new_id
from memorybus.processes.light_imports import reveal_opentelemetry

from memorybus_console.cli.options import (
    DEFAULT,
    AgentOption,
    Common,
    UserOption,
    WorkspaceOption,
    positive,
)


def run_mcp(
    *,
    user: UserOption = None,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
    session: Annotated[
        str | None, Parameter(help="The session that asks and writes; a new one if not given.")
    ] = None,
    timeout: Annotated[
        float, Parameter(help="Seconds to wait for providers.", validator=positive)
    ] = 10.0,
    common: Common = DEFAULT,
) -> int:
    """Serve memory by MCP on standard input and output, until the host closes them.

    A host starts this command itself; docs/mcp.md has what to write into its configuration. All
    that it can read and write is of one agent, person and workspace.

    For example:

    - `memorybus mcp --user ana`
    """
    reveal_opentelemetry()
    try:
        from memorybus_console.mcp.server import serve_stdio
    except ImportError as error:
        raise ConfigError(f"this needs the MCP SDK; run: {install_command('mcp')}") from error
    from memorybus.agent.client import MemoryBus
    from memorybus.registry.tools_note import ToolsNote

    settings = common.settings()
    with suppress(LogError):  # Redis is away: the providers' tools come when it answers
        ToolsNote(settings, SYSTEM, new_id).refresh()
    with MemoryBus.connect(settings) as bus:
        asking = bus.session(
            session or f"mcp-{new_id()}",
            user=user,
            agent=agent,
            workspace=workspace,
            platform="mcp",
            warm=False,
        )
        serve_stdio(bus, asking, timeout)
    return 0
