"""``memorybus hermes setup``: providers, settings, workers and a proof for one Hermes home."""

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import chdir, contextmanager
from typing import TYPE_CHECKING

import msgspec
from memorybus.clock import SYSTEM
from memorybus.errors import LogError
from memorybus.health.finding import Check
from memorybus_hermes.home import HermesHome, environment
from memorybus_hermes.install import status
from rich.text import Text

from memorybus_console.cli.hermes.takeover import Takeover
from memorybus_console.cli.options import Common, split_names
from memorybus_console.cli.providers.dialogue import Dialogue, parse_choice
from memorybus_console.cli.providers.provider_setup import SetUp, Setup, notes_of, offers_table
from memorybus_console.result import Presentation
from memorybus_console.views.output import Output
from memorybus_console.views.render import check_line, line

if TYPE_CHECKING:
    from memorybus.config.settings import Settings

_START_SECONDS = 30.0
_LOOK_EVERY = 0.2


class HermesSetUp(msgspec.Struct, frozen=True):
    """What was set up for a Hermes home, and whether a memory was recalled."""

    home: str
    providers: Sequence[str]
    taken_over: list[SetUp]
    workers_stay: bool
    proof: Check


def prepare_home(
    takeover: Takeover,
    common: Common,
    output: Output,
    providers: str | None,
    kinds: Sequence[str],
    *,
    service: bool,
) -> Generator[Text, None, Presentation[HermesSetUp]]:
    """Choose the providers, let workers run, and prove that memory works.

    A person at a terminal is asked. Otherwise nothing is asked, and a service is started only if
    the caller wants one.

    Args:
        takeover: takes over what Hermes has; the settings file is in its home.
        output: where questions and trials are shown.
        providers: the wanted instances or kinds, comma-separated; None to ask.
        service: whether to start a service without asking.
    """
    where = takeover.home
    dialogue = Dialogue(output.err) if sys.stdin.isatty() and not output.json else None
    with chdir(where.path):  # the settings file of the home is read and written
        taken = yield from takeover.run(kinds, dialogue if providers is None else None)
        words = split_names(providers)
        names = tuple(setup.name for setup in taken) if words else ()
        new = yield from _choose_providers(common, output, dialogue, words + names)
        settings = common.settings()
        served = yield from _start_service(settings, where, dialogue, wanted=service)
        proof = _prove(settings)
    yield check_line(proof)
    if not served:
        yield line("To keep the workers running, in another terminal: hermes memorybus up")
    done = HermesSetUp(str(where.path), settings.providers, taken, served, proof)
    return Presentation(done, (), notes_of([*taken, *new]))


def _choose_providers(
    common: Common, output: Output, dialogue: Dialogue | None, words: tuple[str, ...]
) -> Generator[Text, None, list[SetUp]]:
    """Set up the providers that are new, and write all that were chosen into the settings."""
    from memorybus_console.operations.providers import setup

    settings = common.settings()
    chosen = list(words) or _ask_providers(settings, output, dialogue)
    targets = setup.parse_targets(settings, chosen)
    new = [
        word
        for word, target in zip(chosen, targets, strict=True)
        if target.name not in settings.providers
    ]
    done = (yield from Setup(common, output, dialogue).run(new, (), ())) if new else []
    written = common.settings().providers
    edit = setup.edit_to_choose([target.name for target in targets if target.name in written])
    setup.write_edit(edit)
    yield line(f"providers: {', '.join(common.settings().providers)} ({edit.path})")
    return done


def _ask_providers(settings: "Settings", output: Output, dialogue: Dialogue | None) -> list[str]:
    """Return the instances that a person chooses; those of the settings if nobody is asked."""
    from memorybus.processes.commands import list_kinds

    if dialogue is None:
        return list(settings.providers)
    offers = list_kinds(settings)
    output.err.print(offers_table(offers, settings))
    return dialogue.ask_until(
        "Which providers shall remember? (numbers or names)",
        ", ".join(settings.providers),
        lambda answer: parse_choice(answer, [offer.kind for offer in offers]),
    )


# -- workers ---------------------------------------------------------------------------------------


def _start_service(
    settings: "Settings",
    where: HermesHome,
    dialogue: Dialogue | None,
    *,
    wanted: bool,
) -> Generator[Text, None, bool]:
    """Start ``memorybus up`` as a service if that is wanted; return whether workers run."""
    from memorybus.processes.commands import module_command

    from memorybus_console.operations import service

    if _workers_alive(settings):
        return True
    if not wanted:
        question = "Start the workers now and at each login, as a service of yours?"
        possible = dialogue is not None and service.is_possible()
        if dialogue is None or not possible or not dialogue.confirm(question, default=True):
            return False
    variables = {k: v for k, v in environment().items() if k.startswith("MEMORYBUS_")}
    path = service.start(service.unit_text(module_command("memorybus"), where.path, variables))
    yield line(
        f"service: {path}; it ends with your last login unless you run: loginctl enable-linger"
    )
    deadline = SYSTEM.monotonic() + _START_SECONDS
    while not _workers_alive(settings) and SYSTEM.monotonic() < deadline:
        SYSTEM.sleep(_LOOK_EVERY)
    return True


def _workers_alive(settings: "Settings") -> bool:
    try:
        return bool(status.read_bus(settings).workers)
    except LogError:
        return False


def _prove(settings: "Settings") -> Check:
    """Let a memory go through log and workers; return the check, with the line that is recalled."""
    from memorybus.ids import new_mark

    from memorybus_console.operations.doctor import instances

    with _workers(settings):
        try:
            return instances.send_and_recall(settings, SYSTEM, new_mark())
        except LogError as error:
            return Check(name="canary", ok=False, found=str(error), fix="memorybus doctor")


@contextmanager
def _workers(settings: "Settings") -> Iterator[None]:
    """Have workers alive during the block: those that run, else some for this while."""
    from memorybus.processes.child import running_child
    from memorybus.processes.commands import module_command

    if _workers_alive(settings) or (settings.url and not _answers(settings)):
        yield
        return
    command = module_command("memorybus", "up", "--json", "--log-level", "error")
    with running_child(command, settings) as child:
        child.report()
        yield


def _answers(settings: "Settings") -> bool:
    try:
        status.read_bus(settings)
    except LogError:
        return False
    return True
