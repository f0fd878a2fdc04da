"""``memorybus hermes``: the plugin in a Hermes home, and import of what Hermes has stored."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from cyclopts import App, Parameter
from memorybus.health.finding import Check
from memorybus_hermes.install.install import PythonCheck
from rich.text import Text

from memorybus_console.cli.answers import shown
from memorybus_console.cli.hermes.takeover import Takeover, previous_json, show_commands
from memorybus_console.cli.options import (
    DEFAULT,
    OPERATE,
    Common,
    check_names,
    not_negative,
    to_absolute_time,
)
from memorybus_console.cli.providers.provider_setup import SetUp
from memorybus_console.result import Prints
from memorybus_console.views.output import Output
from memorybus_console.views.render import check_line
from memorybus_console.views.safe import visible

if TYPE_CHECKING:
    from memorybus_hermes.home import HermesHome
    from memorybus_hermes.install.status import HermesStatus
    from memorybus_hermes.reconcile.reconcile import ReconcileReport

HermesHomeOption = Annotated[
    Path | None, Parameter(help="The Hermes home; by default HERMES_HOME, else ~/.hermes.")
]
HermesPythonOption = Annotated[
    str | None,
    Parameter(help="The Python that runs Hermes; by default that of `hermes`, else this one."),
]

ChosenProvidersOption = Annotated[
    str | None,
    Parameter(
        help="Provider instances or kinds, comma-separated; by default those of the settings.",
        validator=check_names,
    ),
]
TakeOverOption = Annotated[
    list[str] | None,
    Parameter(
        negative="",
        consume_multiple=False,
        help="Also set up a provider that Hermes has: hermes:honcho runs Hermes's plugin as it is; "
        "honcho uses the bus's own provider. At a terminal you are asked.",
    ),
]
PublishOption = Annotated[
    bool, Parameter(negative="", help="Publish what is missing; without, only show it.")
]
TurnsSinceOption = Annotated[
    str | None,
    Parameter(
        help="Only turns from then on: 2026-11-01, or with a time (UTC); or how long ago: 2h, 7d.",
        converter=to_absolute_time,
    ),
]
SettleOption = Annotated[
    float,
    Parameter(
        help="Seconds after a turn in which the plugin may still publish it. Give less only if no "
        "Hermes runs.",
        validator=not_negative,
    ),
]


class HermesHad(TypedDict):
    """A memory provider that Hermes has configured."""

    plugin: str
    source: str
    active: bool
    settings: dict[str, str]
    secrets: list[str]


class HermesInstalled(TypedDict):
    """What was put into a Hermes home."""

    home: str
    changed: list[str]
    python: PythonCheck
    active: str
    providers: list[HermesHad]


class HermesSetUp(TypedDict):
    """What was set up for a Hermes home, and whether a memory was recalled."""

    home: str
    providers: list[str]
    taken_over: list[SetUp]
    workers_stay: bool
    proof: Check


class HermesUninstalled(TypedDict):
    """What ended the recording of a Hermes, and what is still there."""

    home: str
    removed: bool
    deactivated: bool
    remains: list[str]


def register(app: App) -> None:
    """Add this group's commands."""
    hermes = App(name="hermes", help="The bus as memory of Hermes Agent.", group=OPERATE)
    hermes.command(run_install, name="install")
    hermes.command(run_setup, name="setup")
    hermes.command(run_uninstall, name="uninstall")
    hermes.command(run_status, name="status")
    hermes.command(run_reconcile, name="reconcile")
    app.command(hermes)


@shown
def run_install(
    *,
    home: HermesHomeOption = None,
    python: HermesPythonOption = None,
    activate: Annotated[
        bool, Parameter(negative="", help="Also let Hermes make it its memory provider.")
    ] = False,
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(HermesInstalled)]":
    """Put the plugin into a Hermes home; a second run changes nothing.

    Exit code 1 if the Python that runs Hermes cannot import memorybus: the plugin would not work.
    Memory providers that Hermes has configured are shown; `memorybus hermes setup` takes them over.

    For example:

    - `memorybus hermes install`
    - `memorybus hermes install --home ~/.hermes/profiles/coder --activate`
    """
    from memorybus_hermes.config import active_provider
    from memorybus_hermes.home import environment, find_home, user_home
    from memorybus_hermes.install import install, previous

    output, where = common.output(), find_home(home)
    found = previous.read_previous(where, user_home())
    changed = install.write_plugin(where)
    named = python or install.hermes_python()
    check = install.check_python(named, where, environment())
    if activate and not check.remedy:
        _activate(where, named, output)
    active = active_provider(where.config)
    if output.json:
        report = {"home": str(where.path), "changed": changed, "python": check, "active": active}
        output.result(report | {"providers": list(map(previous_json, found))})
    else:
        output.show(f"{where.plugin_dir}: {', '.join(changed) or 'nothing to change'}")
        if not activate:  # then Hermes's set-up has asked about them
            show_commands(found, output)
        _show_next_steps(output, check, active)
    return 1 if check.remedy else 0


def _activate(where: "HermesHome", python: str, output: Output) -> None:
    """Let Hermes set the plugin up, at this terminal if there is one."""
    from memorybus_hermes.home import environment
    from memorybus_hermes.install import install

    at_terminal = output.is_live and sys.stdin.isatty()
    printed = install.activate(where, python, environment(), at_terminal=at_terminal)
    if printed and not output.json:
        output.show(visible(printed.strip()))


def _show_next_steps(output: Output, check: "PythonCheck", active: str) -> None:
    if check.remedy:
        lacks = "the Python that runs Hermes does not find this memorybus: " if check.python else ""
        output.note(f"{lacks}{check.remedy}", "yellow")
    output.show(f"memory.provider: {visible(active) or 'not set'}; next:")
    if active != "memorybus":
        output.show("    hermes memory setup memorybus")
    output.show("    memorybus up                 (Redis and workers)")
    output.show("    memorybus hermes reconcile   (what history can be imported)")


@shown
def run_setup(
    *,
    home: HermesHomeOption = None,
    python: HermesPythonOption = None,
    providers: ChosenProvidersOption = None,
    take_over: TakeOverOption = None,
    service: Annotated[
        bool, Parameter(negative="", help="Start the workers as a service of systemd, unasked.")
    ] = False,
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(HermesSetUp)]":
    """Choose providers for a Hermes home, start the workers, and show a recalled memory as proof.

    `hermes memory setup memorybus` runs this, and then makes memorybus the memory provider. At a
    terminal it asks; without one it takes the providers of the settings. The settings are in the
    home's memorybus.toml. Workers for the proof end with it, unless they run as a service.

    For example:

    - `memorybus hermes setup`
    - `memorybus hermes setup --providers builtin,holographic --service`
    - `memorybus hermes setup --take-over hermes:honcho`
    """
    from memorybus_hermes.home import find_home

    from memorybus_console.cli.hermes.setup import prepare_home

    output, where = common.output(), find_home(home)
    takeover = Takeover(where, python, common, output)
    done = prepare_home(takeover, common, output, providers, take_over or (), service=service)
    if output.json:
        output.result(done)
    return 0


@shown
def run_uninstall(
    *, home: HermesHomeOption = None, python: HermesPythonOption = None, common: Common = DEFAULT
) -> "Annotated[int, Prints(HermesUninstalled)]":
    """End the recording: remove the plugin's files, and switch the provider off in Hermes.

    Memories and spooled events stay; what else remains, such as the package, is listed. Exit code 1
    if Hermes could not be made to switch it off: then it goes on recording.

    For example:

    - `memorybus hermes uninstall`
    - `memorybus hermes uninstall --home ~/.hermes/profiles/coder`
    """
    from memorybus_hermes.home import environment, find_home
    from memorybus_hermes.install import install

    from memorybus_console.operations import service

    output, where = common.output(), find_home(home)
    named = python or install.hermes_python()
    removed = install.remove_plugin(where)
    deactivated = install.deactivate(where, named, environment())
    remains = install.list_remains(install.check_python(named, where, environment()))
    remains += [f"the service of the workers. To end it: {service.STOP}"] * service.is_ours()
    if output.json:
        done = {"home": str(where.path), "removed": removed, "deactivated": deactivated}
        output.result(done | {"remains": remains})
        return 0
    output.show(f"{where.plugin_dir}: {'removed' if removed else 'was not there'}")
    output.show(_describe_end(where.config, deactivated=deactivated))
    for what in remains:
        output.show(visible(f"remains: {what}"))
    return 0


def _describe_end(config: Path, *, deactivated: bool) -> str:
    from memorybus_hermes.config import active_provider

    if deactivated:
        return "memory.provider: off; a Hermes that runs now records until it is restarted"
    return f"memory.provider: {visible(active_provider(config)) or 'not set'}, as before"


@shown
def run_status(
    *, home: HermesHomeOption = None, python: HermesPythonOption = None, common: Common = DEFAULT
) -> "Annotated[int, Prints(HermesStatus)]":
    """Show whether memory works in a Hermes home: plugin, provider, spool, lag, last error.

    Exit code 1 if something is wrong; each finding names its remedy.

    For example:

    - `memorybus hermes status`
    - `memorybus hermes status --json | jq .look.spool.events`
    """
    from memorybus_hermes.home import environment, find_home
    from memorybus_hermes.install import install, status

    output, where = common.output(), find_home(home)
    check = install.check_python(python or install.hermes_python(), where, environment())
    found = status.read(where, where.settings(**common.overrides()), check)
    if output.json:
        output.result(found)
        return 0 if found.ok else 1
    output.show(Text(visible(f"{found.home} (profile {found.profile})")))
    for one in found.checks:
        output.show(check_line(one))
    output.show(Text(visible(f"spool: {status.describe_spool(found.look)}")))
    for problem in found.problems:
        output.show(Text(visible(f"error: {status.describe_problem(problem)}"), "red"))
    return 0 if found.ok else 1


@shown
def run_reconcile(
    *,
    home: HermesHomeOption = None,
    apply: PublishOption = False,
    since: TurnsSinceOption = None,
    session: Annotated[str, Parameter(help="Only this session.")] = "",
    settle: SettleOption = 30.0,
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(ReconcileReport)]":
    """Publish what Hermes has stored and the bus never received, with its original times.

    That is turns after which Hermes was killed, turns without memory, and everything from before
    the bus was installed, so that this also imports a history. A second run adds nothing. Without
    --apply nothing is published.

    For example:

    - `memorybus hermes reconcile`
    - `memorybus hermes reconcile --apply --since 2026-11-01`
    """
    from memorybus.clock import SYSTEM
    from memorybus_hermes.home import find_home
    from memorybus_hermes.reconcile import ReconcileRequest, Reconciliation

    from memorybus_console.views.hermes_progress import ReconcileBars
    from memorybus_console.views.reconciliation import report_parts

    output, where = common.output(), find_home(home)
    request = ReconcileRequest(
        apply=apply, since=_parse_since(since), session=session, settle=settle
    )
    settings = where.settings(**common.overrides())
    with output.progress("") as bar:
        report = Reconciliation(where, settings, request, SYSTEM, ReconcileBars(bar)).run()
    if output.json:
        output.result(report)
    else:
        for part in report_parts(report):
            output.show(part)
    return 1 if report.refused else 0


def _parse_since(text: str | None) -> int:
    from memorybus.errors import ConfigError
    from memorybus.text.times import parse_timestamp

    try:
        return parse_timestamp(text) if text else 0
    except ValueError as error:
        raise ConfigError(f"--since: {error}") from error
