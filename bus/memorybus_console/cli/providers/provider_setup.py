"""``memorybus provider setup``: ask or read flags, test the instance, then write the files."""

import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TextIO

import msgspec
from cyclopts import Parameter
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.processes.reports import KindOffer, TrialStep, TrialTerms
from memorybus.text.display import visible
from rich.table import Table
from rich.text import Text

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, Common, not_negative, to_absolute_time
from memorybus_console.cli.providers.dialogue import (
    Dialogue,
    answers_from_flags,
    ask_options,
    parse_choice,
    step_line,
)
from memorybus_console.result import Presentation, Remark, Stepwise
from memorybus_console.views.output import Output
from memorybus_console.views.render import line, table

if TYPE_CHECKING:
    from memorybus.config.settings import Settings

    from memorybus_console.operations.providers.setup import SetupAnswers, SetupDraft, Target

_LOCAL = "one host"
_RESTART = Remark(
    "running workers do not know of it yet: restart `memorybus up`, or `memorybus worker`", "yellow"
)

NewInstancesOption = Annotated[
    str, Parameter(help="Kinds, NAME=KIND, or existing instances; asked for if none is given.")
]
ChangesOption = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative="",
        consume_multiple=False,
        help="An option as key=value; with several instances name.key=value.",
    ),
]
SecretsOption = Annotated[
    list[str] | None,
    Parameter(
        negative="",
        consume_multiple=False,
        help="A secret option, whose value is read from a line of standard input.",
    ),
]
AskNothingOption = Annotated[
    bool,
    Parameter(negative="", help="Ask nothing: options that --set does not name stay as they are."),
]
BeginningOption = Annotated[
    str,
    Parameter(
        name="--from",
        converter=to_absolute_time,
        help="Where in the history new instances begin: beginning, now, an ISO time (UTC if it "
        "names no zone), how long ago (2h, 7d), p07:1234, or an event's id.",
    ),
]
TrialWaitOption = Annotated[
    float,
    Parameter(help="Seconds in which the test must recall what it wrote.", validator=not_negative),
]


class SetUp(msgspec.Struct, frozen=True):
    """An instance that was set up, and the result of trying it."""

    name: str
    kind: str
    file: str
    secrets_file: str
    variables: list[str]
    steps: list[TrialStep]
    written: bool

    def describe(self) -> str:
        if not self.written:
            return f"{self.name}: nothing to write, nothing written"
        secrets = (
            f"; {', '.join(self.variables)} into {self.secrets_file}, which is for no repository"
        )
        return f"wrote {self.name} into {self.file}{secrets if self.secrets_file else ''}"


class NotSetUp(MemoryBusError):
    """An instance does not work with the answers given; nothing was written for it."""


@shown
def run_setup(
    *instances: NewInstancesOption,
    change: ChangesOption = None,
    secret: SecretsOption = None,
    yes: AskNothingOption = False,
    test: Annotated[bool, Parameter(help="Write only instances that pass their test.")] = True,
    wait: TrialWaitOption = 10.0,
    since: BeginningOption = "beginning",
    common: Common = DEFAULT,
) -> "Stepwise[list[SetUp]]":
    """Set up provider instances: choose, answer, test, write memorybus.toml and the secrets file.

    An instance that does not pass its test is not written. Secrets are not echoed, and go into a
    file that only you can read; memorybus.toml keeps its comments and its order. A new instance
    catches up with the history, while the others go on.

    For example:

    - `memorybus provider setup`
    - `memorybus provider setup honcho hindsight`
    - `memorybus provider setup work=honcho --set base_url=http://localhost:8000 --yes`
    - `memorybus provider setup notes=holographic --from now --yes`
    - `pass honcho | memorybus provider setup honcho --secret api_key_env --yes`
    """
    output = common.output()
    if not yes and not sys.stdin.isatty():
        raise ConfigError("standard input is no terminal: give --yes, and options with --set")
    dialogue = None if yes else Dialogue(output.err)
    flow = Setup(common, output, dialogue, test=test, wait=wait, since=since)
    return Stepwise(_set_up(flow.run(instances, change or (), secret or ())))


def _set_up(
    steps: Generator[Text, None, list[SetUp]],
) -> Generator[Text, None, Presentation[list[SetUp]]]:
    done = yield from steps
    return Presentation(done, (), notes_of(done))


def notes_of(done: Sequence[SetUp]) -> list[Remark]:
    return [_RESTART] if any(setup.written for setup in done) else []


@dataclass
class Setup:
    """One run of the command; without a dialogue only flags give answers.

    Args:
        output: where questions and trials are shown.
        dialogue: asks a person; None if nobody is asked.
        test: whether an instance is tried before it is written.
        wait: seconds in which the test must recall what it wrote.
        since: where in the history new instances begin.
    """

    common: Common
    output: Output
    dialogue: Dialogue | None
    test: bool = True
    wait: float = 10.0
    since: str = "beginning"

    def run(
        self,
        words: Sequence[str],
        changes: Sequence[str],
        secrets: Sequence[str],
        lines: TextIO | None = None,
    ) -> Generator[Text, None, list[SetUp]]:
        """Set up the instances one after the other; yield a line for each, return what was done.

        Args:
            words: the instances, as on the command line; a person is asked if there are none.
            changes: words ``key=value``.
            secrets: options whose values are on `lines`.
            lines: where secrets are read; standard input if None.
        """
        from memorybus_console.operations.providers import setup

        settings = self.common.settings()
        targets = setup.parse_targets(settings, words or self._choose(settings))
        offers = setup.find_offers(settings, targets)
        flags = answers_from_flags(targets, offers, changes, secrets, lines or sys.stdin)
        done = []
        for target in targets:
            offer, answers = offers[target.kind], flags[target.name]
            if self.dialogue:
                answers = self._ask_options(self.dialogue, target, offer, answers)
            done.append(self._set_up(answers))
            yield line(done[-1].describe())
        return done

    def _choose(self, settings: "Settings") -> list[str]:
        from memorybus.processes.commands import list_kinds

        if self.dialogue is None:
            raise ConfigError("name what to set up: memorybus provider setup KIND --yes")
        offers = list_kinds(settings)
        self.output.err.print(offers_table(offers, settings))
        names = [offer.kind for offer in offers]
        return self.dialogue.ask_until(
            "Which ones? (numbers or names)", "", lambda answer: parse_choice(answer, names)
        )

    def _ask_options(
        self, dialogue: Dialogue, target: "Target", offer: KindOffer, flags: "SetupAnswers"
    ) -> "SetupAnswers":
        settings = self.common.settings()
        dialogue.say(f"\n{target.name} ({offer.kind}): {offer.summary}", "bold")
        now = settings.provider.get(target.name, {})
        return ask_options(dialogue, settings, offer.options or (), now, flags)

    def _set_up(self, answers: "SetupAnswers") -> SetUp:
        from memorybus_console.cli.options import operator
        from memorybus_console.operations.providers import setup

        settings = self.common.settings()
        what = setup.draft_setup(settings, answers, self.since)
        steps = self._try_out(what)
        written = what.changes and self._is_confirmed(what, steps)
        if written:
            setup.write_draft(settings, what, operator())
        return SetUp(
            name=answers.target.name,
            kind=answers.target.kind,
            file=what.edit.path,
            secrets_file=what.secrets.path if answers.secrets else "",
            variables=sorted(answers.secrets),
            steps=steps,
            written=written,
        )

    def _try_out(self, what: "SetupDraft") -> list[TrialStep]:
        from memorybus_console.operations.providers import setup
        from memorybus_console.operations.providers.setup import try_provider

        with setup.trial_settings(what, self.common.overrides()) as then:
            setup.check_draft(then, what)
            if not self.test:
                return []
            self.output.note(f"testing {what.target.name} …")
            return list(self._show(try_provider(then, what.target.name, TrialTerms(self.wait))))

    def _show(self, steps: Iterator[TrialStep]) -> Iterator[TrialStep]:
        """Yield the steps of a trial; each is shown on stderr when it is done."""
        for step in steps:
            if not self.output.json:
                self.output.aside(step_line(step))
            yield step

    def _is_confirmed(self, what: "SetupDraft", steps: Sequence[TrialStep]) -> bool:
        """Return whether to write the instance; one that failed only if a person confirms it."""
        failed = next((step for step in steps if not step.ok), None)
        if self.dialogue is None:
            if failed:
                raise NotSetUp(
                    f"{what.target.name} does not {failed.name}: {failed.found}; nothing was "
                    f"written for it. {failed.fix or '--no-test writes it anyway'}"
                )
            return True
        if what.edit.diff:
            self.output.err.print(visible(what.edit.diff), soft_wrap=True)
        question = "It does not work yet. Write it anyway?" if failed else "Write it?"
        return self.dialogue.confirm(question, default=not failed)


def offers_table(offers: Sequence[KindOffer], settings: "Settings") -> Table:
    heads = ("", "kind", "delivery", "state", "what it is")
    rows = ((n, offer.kind, *_described(offer, settings)) for n, offer in enumerate(offers, 1))
    return table(heads, rows, texts=("what it is",))


def _described(offer: KindOffer, settings: "Settings") -> tuple[str | None, str | None, str]:
    if offer.missing:
        return None, None, offer.missing
    state = _LOCAL if offer.placement == "local" else "any worker"
    here = " It is set up already." if offer.kind in settings.providers else ""
    return offer.delivery, state, offer.summary + here
