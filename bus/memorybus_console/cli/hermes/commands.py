"""``memorybus hermes``: the plugin in a Hermes home, and import of what Hermes has stored."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from memorybus_hermes.install.install import PythonCheck
from rich.text import Text

from memorybus_console.cli.answers import shown
from memorybus_console.cli.hermes.takeover import (
    HermesHad,
    Takeover,
    takeover_lines,
    without_secrets,
)
from memorybus_console.cli.options import (
    DEFAULT,
    Common,
    check_names,
    not_negative,
    to_absolute_time,
)
from memorybus_console.result import Presentation, Remark, Stepwise
from memorybus_console.views.render import check_line, line

if TYPE_CHECKING:
    from memorybus_hermes.home import HermesHome
    from memorybus_hermes.install.status import HermesStatus
    from memorybus_hermes.reconcile.reconcile import ReconcileReport

    from memorybus_console.cli.hermes.setup import HermesSetUp

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


class HermesInstalled(msgspec.Struct, frozen=True):
    """What was put into a Hermes home."""

    home: str
    changed: list[str]
    python: PythonCheck
    active: str
    providers: list[HermesHad]


class HermesUninstalled(msgspec.Struct, frozen=True):
    """What ended the recording of a Hermes, and what is still there."""

    home: str
    removed: bool
    deactivated: bool
    remains: list[str]


@shown
def run_install(
    *,
    home: HermesHomeOption = None,
    python: HermesPythonOption = None,
    activate: Annotated[
        bool, Parameter(negative="", help="Also let Hermes make it its memory provider.")
    ] = False,
    common: Common = DEFAULT,
) -> Presentation[HermesInstalled]:
    """Put the plugin into a Hermes home; a second run changes nothing.

    Exit code 1 if the Python that runs Hermes cannot import memorybus: the plugin would not work.
    Memory providers that Hermes has configured are shown; `memorybus hermes setup` takes them over.

    For example:

    - `memorybus hermes install`
    - `memorybus hermes install --home ~/.hermes/profiles/coder --activate`
    """
    from memorybus_hermes.home import active_provider, environment, find_home, user_home
    from memorybus_hermes.install import install, previous

    where = find_home(home)
    had = previous.read_previous(where, user_home())
    changed = install.write_plugin(where)
    named = python or install.hermes_python()
    check = install.check_python(named, where, environment())
    asked = activate and not check.remedy
    printed = _activate(where, named, at_terminal=common.output().is_live) if asked else ""
    active = active_provider(where.config)
    done = HermesInstalled(str(where.path), changed, check, active, list(map(without_secrets, had)))
    parts = [
        *([line(printed)] if printed else []),
        line(f"{where.plugin_dir}: {', '.join(changed) or 'nothing to change'}"),
        *takeover_lines(() if activate else had),  # Hermes's set-up has asked about them
        *_next_steps(active),
    ]
    return Presentation(done, parts, _problems_of(check), code=int(bool(check.remedy)))


def _activate(where: "HermesHome", python: str, *, at_terminal: bool) -> str:
    """Let Hermes set the plugin up, at this terminal if there is one; return what it printed."""
    from memorybus_hermes.home import environment
    from memorybus_hermes.install import install

    at_terminal = at_terminal and sys.stdin.isatty()
    return install.activate(where, python, environment(), at_terminal=at_terminal).strip()


def _problems_of(check: PythonCheck) -> Iterator[Remark]:
    if check.remedy:
        lacks = "the Python that runs Hermes does not find this memorybus: " if check.python else ""
        yield Remark(f"{lacks}{check.remedy}", "yellow")


def _next_steps(active: str) -> Iterator[Text]:
    yield line(f"memory.provider: {active or 'not set'}; next:")
    if active != "memorybus":
        yield line("    hermes memory setup memorybus")
    yield line("    memorybus up                 (Redis and workers)")
    yield line("    memorybus hermes reconcile   (what history can be imported)")


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
) -> "Stepwise[HermesSetUp]":
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
    return Stepwise(
        prepare_home(takeover, common, output, providers, take_over or (), service=service)
    )


@shown
def run_uninstall(
    *, home: HermesHomeOption = None, python: HermesPythonOption = None, common: Common = DEFAULT
) -> Presentation[HermesUninstalled]:
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

    where = find_home(home)
    named = python or install.hermes_python()
    removed = install.remove_plugin(where)
    deactivated = install.deactivate(where, named, environment())
    remains = install.list_remains(install.check_python(named, where, environment()))
    remains += [f"the service of the workers. To end it: {service.STOP}"] * service.is_ours()
    done = HermesUninstalled(str(where.path), removed, deactivated, remains)
    parts = [
        f"{where.plugin_dir}: {'removed' if removed else 'was not there'}",
        _describe_end(where.config, deactivated=deactivated),
        *(f"remains: {what}" for what in remains),
    ]
    return Presentation(done, map(line, parts))


def _describe_end(config: Path, *, deactivated: bool) -> str:
    from memorybus_hermes.home import active_provider

    if deactivated:
        return "memory.provider: off; a Hermes that runs now records until it is restarted"
    return f"memory.provider: {active_provider(config) or 'not set'}, as before"


@shown
def run_status(
    *, home: HermesHomeOption = None, python: HermesPythonOption = None, common: Common = DEFAULT
) -> "Presentation[HermesStatus]":
    """Show whether memory works in a Hermes home: plugin, provider, spool, lag, last error.

    Exit code 1 if something is wrong; each finding names its remedy.

    For example:

    - `memorybus hermes status`
    - `memorybus hermes status --json | jq .look.spool.events`
    """
    from memorybus_hermes.home import environment, find_home
    from memorybus_hermes.install import install, status

    where = find_home(home)
    check = install.check_python(python or install.hermes_python(), where, environment())
    now = status.read(where, where.settings(**common.overrides()), check)
    parts = [
        line(f"{now.home} (profile {now.profile})"),
        *map(check_line, now.checks),
        line(f"spool: {status.describe_spool(now.look)}"),
        *(line(f"error: {status.describe_problem(each)}", "red") for each in now.problems),
    ]
    return Presentation(now, parts, code=int(not now.ok))


@shown
def run_reconcile(
    *,
    home: HermesHomeOption = None,
    apply: PublishOption = False,
    since: TurnsSinceOption = None,
    session: Annotated[str, Parameter(help="Only this session.")] = "",
    settle: SettleOption = 30.0,
    common: Common = DEFAULT,
) -> "Presentation[ReconcileReport]":
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

    from memorybus_console.views.reconciliation import ReconcileBars, report_parts

    where = find_home(home)
    request = ReconcileRequest(
        apply=apply, since=_parse_since(since), session=session, settle=settle
    )
    settings = where.settings(**common.overrides())
    with common.output().progress("") as bar:
        report = Reconciliation(where, settings, request, SYSTEM, ReconcileBars(bar)).run()
    return Presentation(report, report_parts(report), code=int(bool(report.refused)))


def _parse_since(text: str | None) -> int:
    from memorybus.errors import ConfigError
    from memorybus.text.times import parse_timestamp

    try:
        return parse_timestamp(text) if text else 0
    except ValueError as error:
        raise ConfigError(f"--since: {error}") from error
