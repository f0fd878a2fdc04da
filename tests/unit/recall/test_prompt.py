"""How the answer to a prompt is made of what is warm, what comes in time, and the rest."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from memorybus.config.settings import Settings
from memorybus.ids import text_digest
from memorybus.recall.answers import RecallQuestion, SessionRecall
from memorybus.recall.asking import Replies
from memorybus.recall.model import RecallRequest, WarmAsk, WarmResult
from memorybus.testing import FakeClock

PROMPT = "where does the heron nest?"
HERE = text_digest(PROMPT)
NEAR, FAR = "- the heron nests by the pond", "- the invoice is paid"


class Providers:
    """Providers that answer at once, fail (None), or are silent (not in `results`)."""

    def __init__(self, asked: set[str], results: Mapping[str, WarmResult | None]) -> None:
        self.recalling, self.results, self.waits = frozenset(asked), results, list[float]()
        self.budgets: list[int] = []

    def ask(self, question: WarmAsk, wait: float, there: Collection[str]) -> Replies:
        """Answer, and remember for how long the prompt would have waited."""
        self.waits.append(wait)
        self.budgets.append(question.want.budget)
        return Replies(self.recalling.difference(there), dict(self.results), ended=True)


def warm(line: str, prompt: str = PROMPT) -> WarmResult:
    """Return what was recalled for a prompt: one line, or none."""
    return WarmResult((line,) if line else (), asked=text_digest(prompt))


class Warm:
    """A warm cache with results."""

    def __init__(self, results: Mapping[str, WarmResult]) -> None:
        self._results = dict(results)

    def read(self, keys: Sequence[str]) -> dict[str, WarmResult]:
        """Return them."""
        return self._results


def lines_of(
    providers: Providers,
    there: Mapping[str, WarmResult],
    clock: FakeClock,
    text: str = PROMPT,
    window: str = "",
) -> dict[str, tuple[str, ...]]:
    """Answer a prompt."""
    question = RecallQuestion(
        (), text, lambda asked: WarmAsk("slot", 0, RecallRequest(asked)), window
    )
    return SessionRecall(cast("Any", Warm(there)), providers, clock).answer(question, 0.25).lines


def test_what_is_warm_for_this_prompt_asks_nobody(fake_clock):
    """An answer to this very prompt costs no question."""
    providers = Providers({"one", "two"}, {})
    there = {"one": warm(NEAR), "two": warm("")}
    assert lines_of(providers, there, fake_clock) == {"one": (NEAR,)}
    assert providers.waits == []


def test_those_without_an_answer_are_asked(fake_clock):
    """What is warm and what comes now stand together; a warm answer to another prompt gives way."""
    providers = Providers({"one", "two", "new"}, {"two": warm(NEAR), "new": warm(FAR)})
    there = {"one": warm(NEAR), "two": warm(NEAR, "another")}
    found = lines_of(providers, there, fake_clock)
    assert found == {"one": (NEAR,), "two": (NEAR,), "new": (FAR,)}
    assert providers.waits == [0.25]


@pytest.mark.parametrize("results", [{}, {"one": None}], ids=["silent", "failed"])
def test_of_one_that_is_late_only_what_is_near_is_given(results, fake_clock):
    """A line that was asked for another prompt is shown only if it has to do with this one."""
    there = {"one": WarmResult((FAR, NEAR), asked=text_digest("another"))}
    assert lines_of(Providers({"one"}, results), there, fake_clock) == {"one": (NEAR,)}


def test_no_answer_is_an_answer(fake_clock):
    """Where a provider says that nothing fits, nothing that was warm before is given instead."""
    there = {"one": warm(NEAR, "another")}
    assert lines_of(Providers({"one"}, {"one": warm("")}), there, fake_clock) == {}


def test_what_matters_most_may_come_from_anything_warm(fake_clock):
    """Without a topic, of a provider that is late all that is warm serves."""
    there = {"one": warm(FAR, "another")}
    assert lines_of(Providers({"one"}, {}), there, fake_clock, "") == {"one": (FAR,)}


def test_waiting_can_be_turned_off():
    """The setting may be 0: nobody is asked, and nothing waits."""
    assert Settings(data_dir=Path("/nowhere"), prefetch_wait=0.0).prefetch_wait == 0.0


class Refilling(Providers):
    """A provider that fills the budget with numbered lines."""

    def ask(self, question: WarmAsk, wait: float, there: Collection[str]) -> Replies:
        """Answer with as many lines as fit."""
        lines = tuple(f"- {number:038d}" for number in range(question.want.budget // 40))
        self.results = {"one": WarmResult(lines, asked=HERE)}
        return super().ask(question, wait, there)


@pytest.mark.parametrize(("held", "budgets"), [(10, [2_000]), (40, [2_000, 3_600])])
def test_what_the_window_holds_gives_its_room_to_others(held, budgets, fake_clock):
    """Lines of the window are left out; if they are most of a block, as much again is asked for."""
    window = "\n".join(f"{number:038d}" for number in range(held))
    providers = Refilling({"one"}, {})
    lines = lines_of(providers, {}, fake_clock, window=window)["one"]
    assert lines[0] == f"- {held:038d}"
    assert len(lines) == budgets[-1] // 40 - held
    assert providers.budgets == budgets


def test_a_window_that_a_late_provider_cannot_refill_costs_nothing_else(fake_clock):
    """If no more comes in time, what the window does not hold is the answer."""
    told = tuple(f"- {number:038d}" for number in range(50))
    there = {"one": WarmResult(told, asked=HERE)}
    window = "\n".join(told[:49])
    providers = Providers({"one"}, {})
    assert lines_of(providers, there, fake_clock, window=window) == {"one": told[49:]}
