"""The trial of an instance: what each step says, and what is done about one that fails."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MissingProvider, Transient, Unavailable
from memorybus.events import Scope, SessionStarted, TurnCompleted
from memorybus.ids import new_id
from memorybus.processes.reports import OptionField, TrialStep
from memorybus.testing import FakeClock
from memorybus_providers.base import (
    Capabilities,
    HookContext,
    MemoryProvider,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
    Residue,
)
from memorybus_providers.registry import check_options, registered_kinds
from memorybus_workers.provider_commands.offers import list_offers
from memorybus_workers.provider_commands.trial import SCOPE, Trial, TrialFailed, advice, run_trial


class Remembering(MemoryProvider):
    """Keeps every turn in a list that its class's instances share, as a server would."""

    kind = "remembering"
    capabilities = Capabilities(handles=frozenset({SessionStarted, TurnCompleted}), forgets=True)

    def __init__(self, config: ProviderConfig, kept: list[tuple[Any, str]]) -> None:
        super().__init__(config)
        self.kept = kept
        self.is_open = False

    def open(self) -> None:
        self.is_open = True

    def shutdown(self) -> None:
        self.is_open = False

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        self.kept.append((ctx.scope, event.user))

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        return [Recollection(text) for _, text in self.kept]

    def forget(self, scope: RecallScope) -> Residue:
        self.kept.clear()
        return Residue(1, ("a line in its log",))


class Refused(Remembering):
    """Its server is away, and says so with a password in the text."""

    def open(self) -> None:
        raise Unavailable("no server at http://ann:hunter2hunter2@localhost:9")


class Unwell(Remembering):
    """Opens, and says what keeps it from serving."""

    def health(self, deadline: float) -> str:
        return "its quota is used up: wait until tomorrow"


class Deaf(Remembering):
    """Takes every write and recalls something else."""

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        return [Recollection("a walrus")]


class Clinging(Remembering):
    """Says that it forgot, and recalls it all the same."""

    def forget(self, scope: RecallScope) -> Residue:
        return Residue()


class Failing(Remembering):
    """Fails in its hook."""

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        raise Transient("HTTP 500")


class Slow(Remembering):
    """Takes longer than a worker waits."""

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        self.config.clock.sleep(ctx.deadline + 1)


class Elsewhere(Remembering):
    """Hears of no turns."""

    capabilities = Capabilities(handles=frozenset())


class Hanging(Remembering):
    """Never returns."""

    def open(self) -> None:
        threading.Event().wait()


Run = Callable[..., list[TrialStep]]


@pytest.fixture(name="made")
def _made() -> list[Remembering]:
    """Return the instances that were made."""
    return []


@pytest.fixture(name="run")
def _run(tmp_path: Path, made: list[Remembering]) -> Run:
    """Try a class to the end."""
    kept: list[tuple[Any, str]] = []

    def run(kind: type[Remembering], hung: float = 20.0) -> list[TrialStep]:
        clock = SYSTEM if kind is Hanging else FakeClock()

        def make() -> MemoryProvider:
            config = ProviderConfig(name="mine", home=tmp_path, clock=clock)
            made.append(kind(config, kept))
            return made[-1]

        trial = Trial(make, Settings(data_dir=tmp_path), clock, new_id, 1.0)
        return list(run_trial(trial, "mine", hung))

    return run


def test_what_was_written_is_recalled_by_another_instance(run, made):
    """Every step passes, what was written is erased, and all that was opened is closed."""
    steps = run(Remembering)

    assert [(step.name, step.ok, step.fix) for step in steps] == [
        ("open", True, ""),
        ("write", True, ""),
        ("recall", True, ""),
        ("forget", True, ""),
    ]
    assert steps[-1].found == "1 erased; a line in its log"
    assert made[0].kept == []
    assert len(made) == 2
    assert not any(one.is_open for one in made)


@pytest.mark.parametrize(
    ("kind", "last", "said", "fix"),
    [
        (Refused, "open", "no server at http://***@localhost:9", "start its backend"),
        (Unwell, "open", "its quota is used up", ""),
        (Failing, "write", "Transient: HTTP 500", "provider test mine"),
        (Slow, "write", "a worker abandons a call after call_timeout", ""),
        (Deaf, "recall", "not among the 1 memories", "--wait 60"),
        (Clinging, "forget", "in spite of it", ""),
        (Hanging, "open", "no end in sight", "whether the backend answers"),
    ],
)
def test_the_first_step_that_fails_says_why(kind, last, said, fix, run, made):
    """The exact error without credentials, and what to do; only what was written is erased then."""
    steps = run(kind, hung=0.2 if kind is Hanging else 20.0)

    (failed,) = (step for step in steps if not step.ok)
    assert failed.name == last
    assert said in failed.found
    assert fix in failed.fix
    assert "hunter2" not in failed.found
    behind = [step.name for step in steps[steps.index(failed) + 1 :]]
    assert behind == ([] if last in ("open", "forget") else ["forget"])


def test_what_a_provider_does_not_claim_is_not_tried(run):
    """Nothing is made up: such a step is no success, and is marked as not claimed."""
    steps = run(Elsewhere)

    assert all(step.ok for step in steps)
    assert [step.name for step in steps if not step.claimed] == ["write", "recall", "forget"]
    assert all(step.found.startswith("not claimed: ") for step in steps if not step.claimed)


def test_somebodys_own_memories_are_not_erased(tmp_path):
    """Who is named as a trial's owner loses nothing: erasing takes all that is kept of a scope."""
    kept: list[tuple[Any, str]] = [(Scope("a", "ann"), "I like tea.")]

    def make() -> MemoryProvider:
        return Remembering(ProviderConfig(name="mine", home=tmp_path), kept)

    ann = Scope("a", "ann")
    trial = Trial(make, Settings(data_dir=tmp_path), FakeClock(), new_id, 1.0, ann)

    steps = list(run_trial(trial, "mine"))

    assert all(step.ok for step in steps)
    assert "all of ann" in steps[-1].found
    assert [scope for scope, _ in kept] == [ann, ann]


class Keeping(Remembering):
    """Cannot erase anything, and writes down for whom it was told something."""

    capabilities = Capabilities(handles=frozenset({TurnCompleted}))


def test_what_cannot_be_erased_is_nobodys(run, made):
    """Who finds it later sees by its owner where it comes from."""
    steps = run(Keeping)

    assert SCOPE.user in steps[-1].found
    assert {scope for scope, _ in made[0].kept} == {SCOPE}


@pytest.mark.parametrize(
    ("error", "step", "said"),
    [
        (MissingProvider("no"), "open", "install"),
        (OSError("no"), "open", "start its backend"),
        (ValueError("no"), "write", "correct its options or secrets"),
        (TrialFailed("no"), "recall", "--wait"),
    ],
)
def test_advice_goes_by_the_error(error, step, said):
    """What to do follows from the kind of failure and names the instance."""
    assert said in advice(error, step, "mine")
    assert "memorybus provider " in advice(error, step, "mine")
    assert "mine" in advice(error, step, "mine")


def test_every_registered_kind_is_offered():
    """Each says what it is, and what it promises; a missing library is told, not raised."""
    found = {offer.kind: offer for offer in list_offers()}

    assert set(found) == set(registered_kinds())
    assert all(offer.missing or (offer.summary and offer.delivery) for offer in found.values())
    assert found["holographic"].delivery == "transactional"
    assert found["holographic"].tools


def test_options_are_read_with_their_types():
    """A schema's entry says whether it is a secret, and its default what kind of value it has."""
    (offer,) = list_offers(["holographic"])
    options = {option.key: option for option in offer.options or ()}

    assert options["embedder_key"].secret
    assert options["embedder_batch"].kind_of_value == "number"
    assert options["embedder"].kind_of_value == "text"


def test_a_kind_that_is_not_there_says_why():
    """The remedy is the registry's own."""
    (offer,) = list_offers(["holografic"])

    assert "did you mean 'holographic'" in offer.missing


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        (OptionField("a", default=True), "flag"),
        (OptionField("a", default=1.5), "number"),
        (OptionField("a", default=[]), "list"),
        (OptionField("a"), "text"),
        (OptionField("a", default="", type="number"), "number"),
    ],
)
def test_what_an_option_is(field, kind):
    """The type that the schema names counts, then the default's."""
    assert field.kind_of_value == kind


def test_a_value_must_be_one_of_the_choices(tmp_path):
    """Another value is refused with those there are."""
    schema = [{"key": "mode", "description": "how", "choices": ["fast", "deep"]}]
    check_options(schema, ProviderConfig(name="mine", home=tmp_path, options={"mode": "deep"}))

    with pytest.raises(ConfigError, match="'mode' must be one of: fast, deep"):
        check_options(schema, ProviderConfig(name="mine", home=tmp_path, options={"mode": "x"}))
