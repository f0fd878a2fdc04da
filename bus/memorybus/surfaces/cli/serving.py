"""``memorybus serve``: serve the page of operators."""

from typing import Annotated

from cyclopts import App, Parameter

from memorybus.errors import ConfigError
from memorybus.health.metrics.server import Address
from memorybus.processes import signals
from memorybus.surfaces.cli.options import DEFAULT, RUN, Common

PORT = 8686


def register(app: App) -> None:
    """Add this command."""
    app.command(run_serve, name="serve", group=RUN)


def run_serve(
    *,
    host: Annotated[str, Parameter(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port; 0 lets the system choose.")] = PORT,
    common: Common = DEFAULT,
) -> int:
    """Serve the page of operators, /metrics and the health paths until Ctrl-C.

    It listens on loopback and is read-only, unless `page_token` or `page_proxy_header` is set: then
    people sign in, and what they do is recorded in the log. Without one of these settings it
    refuses to listen on an address that other machines reach.

    For example:

    - `memorybus serve`
    - `memorybus serve --host 0.0.0.0 --port 8686`
    - `memorybus config page-token`

    Parameters
    ----------
    json
        Print one JSON line when it listens: url, acts.
    """
    try:
        from memorybus.surfaces.web import serving
    except ImportError as error:
        raise ConfigError(
            "the page needs Starlette, uvicorn, Jinja2 and argon2-cffi; install them with: "
            "pip install 'memorybus[web]'"
        ) from error
    output = common.output()

    def tell(where: Address, acts: bool) -> None:
        url = f"http://{where}/"
        if output.json:
            output.json_line({"url": url, "acts": acts})
            return
        output.show(f"memorybus serves its page at {url}")
        if not acts:
            output.show("It is read-only; to act there: memorybus config page-token")
        output.show("Ctrl-C stops it.")

    try:
        serving.run(common.settings(), Address(host, port), tell)
    except KeyboardInterrupt as end:
        return signals.hurried_exit_code(end)
    except SystemExit as end:
        if end.code != signals.TERMINATED:
            raise
        return signals.hurried_exit_code(end)
    return 0
