"""``memorybus top``: show the bus live in a terminal."""

import sys

from memorybus.errors import ConfigError, install_command

from memorybus_console.cli.options import DEFAULT, Common, operator


def run_top(*, common: Common = DEFAULT) -> int:
    """Watch providers, lanes, dead letters and events, and act: pause, resume, retry, discard.

    Press ? for the keys. It needs a terminal and the extra `top`.

    For example:

    - `memorybus top`
    - `memorybus top --url redis://10.0.0.5:6379`
    """
    settings = common.settings()
    if common.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("top needs a terminal; for programs: memorybus status --watch --json")
    try:
        from memorybus_console.top.app import TopApp
    except ImportError as error:
        raise ConfigError(f"top needs textual; run: {install_command('top')}") from error
    app = TopApp(settings, operator())
    app.run()
    return app.return_code or 0
