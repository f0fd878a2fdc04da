"""``memorybus serve``: serve the operator web UI."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, TypedDict

from cyclopts import Parameter
from memorybus.errors import ConfigError, install_command
from memorybus.health.metrics_server import Address
from memorybus.processes import signals
from memorybus.processes.light_imports import reveal_opentelemetry

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, Common
from memorybus_console.result import Prints
from memorybus_console.views.output import Output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memorybus_console.gateway.opening import OpenGateway
    from memorybus_console.web.access import OwnToken

PORT = 8686


class Serving(TypedDict):
    """The line of `memorybus serve` when it listens.

    `acts` says whether people can act there, `token_file` where the token is that the page made,
    `api` where agents call it.
    """

    url: str
    acts: bool
    token_file: str | None
    api: str | None


@shown
def run_serve(
    *,
    host: Annotated[str, Parameter(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port; 0 lets the system choose.")] = PORT,
    api: Annotated[
        bool, Parameter(negative="", help="Serve agents, too: the HTTP API and MCP.")
    ] = False,
    origin: Annotated[
        list[str] | None,
        Parameter(
            negative="",
            consume_multiple=False,
            help="With --api: pages of this origin may call, as https://app.example; may be "
            "repeated.",
        ),
    ] = None,
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(Iterator[Serving])]":
    """Serve the operator web UI, /metrics and the health paths until Ctrl-C.

    People sign in with a token, and what they do is recorded in the log. If neither `page_token`
    nor `page_proxy_header` is set, the first start makes a token, prints it once, and keeps it in
    `page.token` in `data_dir`; then it listens on loopback only, and whoever does not sign in sees
    counts.

    With --api, agents in any language publish and recall at `/v1`, and hosts of models at `/mcp`.
    `memorybus key create` makes keys; without any, only programs of this machine may call.

    For example:

    - `memorybus serve`
    - `memorybus serve --host 0.0.0.0 --port 8686`
    - `memorybus serve --api`
    - `memorybus config page-token`

    Parameters
    ----------
    json
        Print one JSON line when it listens: url, acts, token_file, api.
    """
    try:
        from memorybus_console.web import serving
    except ImportError as error:
        raise ConfigError(
            "the page needs Starlette, uvicorn, Jinja2 and argon2-cffi; run: "
            f"{install_command('web')}"
        ) from error
    if api:
        reveal_opentelemetry()  # the MCP SDK loads it
    try:
        show = partial(_show_start, common.output())
        serving.run(common.settings(), Address(host, port), show, (origin or ()) if api else None)
    except KeyboardInterrupt as end:
        return signals.hurried_exit_code(end)
    except SystemExit as end:
        if end.code != signals.TERMINATED:
            raise
        return signals.hurried_exit_code(end)
    return 0


def _show_start(
    output: Output, where: Address, own: "OwnToken | None", gateway: "OpenGateway | None"
) -> None:
    url = f"http://{where}/"
    if output.json:
        file = str(own.path) if own else None
        api = f"{url}v1" if gateway else None
        output.json_line({"url": url, "acts": True, "token_file": file, "api": api})
        return
    output.show(f"memorybus serves its page at {url}")
    if own and own.is_new:
        output.show(f"Sign in with this token, shown this once: {own.token}")
    if own:
        output.show(f"The token is kept in {own.path}; without it the page shows only counts.")
    if gateway:
        output.show(f"Agents call it at {url}v1 (described in {url}v1/openapi.json)")
        if gateway.mcp:
            output.show(f"Hosts of models use {url}mcp")
        if gateway.is_keyless:
            output.show("There is no key: every program of this machine may call. For others, run:")
            output.show("  memorybus key create --user NAME --may publish,recall,tools")
    output.show("Ctrl-C stops it.")
