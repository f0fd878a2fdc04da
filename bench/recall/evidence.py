"""How much of the evidence recall finds: through the whole bus, alone, and by plain BM25.

``python bench/recall/evidence.py [DIRECTORY …] [--sample N] [--alone] [--facts STYLE]
[--embedder …]``. Each
directory holds conversations of LoCoMo (two people) or BEAM (a person and an assistant), as JSON.
All of one directory go into one log, each as a person's own, through `Session.turn_completed`, an
embedded Redis and a real worker with its recall process; then each question is asked through
`MemoryBus.recall` as that person's, with 1,000, 2,000 and 4,000 characters for the whole block, its
fence included. In the same run the same turns are asked of the provider alone, one file for each
conversation, without Redis (``--alone`` leaves the bus out); and of plain BM25 over pieces of 400
characters (`recall.floors`), of all that was said and of what the person said. `recall_lab` says
what counts as found.

Printed are the mean shares found, the median characters of the blocks for questions about what was
never said, the milliseconds of `prefetch` alone and of `MemoryBus.recall`, and for how many
questions the bus and the provider alone differ: the bus numbers facts in the order of its lanes, so
that equal ones may change places. ``--embedder ADDRESS --model NAME`` (or a directory) measures
with search by meaning. Written is ``bench/out/recall.json``. Exit codes: 0 measured, 2 no data.
"""

import argparse
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from gauge import p50, p99
from memorybus.agent.client import MemoryBus
from memorybus_providers.base import ProviderConfig
from memorybus_providers.holographic import HolographicProvider
from recall_lab import (
    NONE,
    PROVIDER,
    BlockFor,
    Conversation,
    alone,
    await_vectors,
    feed,
    opened,
    plain,
    read,
    shares,
    shares_amid,
    turns,
)
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table
from stage import ROOT, WAIT_SECONDS, Stage

from recall.floors import Bm25
from recall.scripted import STYLES, conclude

DATA = ROOT.parent / "shared" / "data"
LOCOMO = DATA / "locomo"
OUT = ROOT / "bench" / "out" / "recall.json"
BUDGETS = (1_000, 2_000, 4_000)
USUAL_BUDGET = 2_000
"""The budget at which lengths and times are taken."""

BUS, ALONE = "through the bus", "alone"
_VECTOR_SECONDS = 10.0
"""Seconds for a question's vector: what is measured is the answer with it."""


class Row(msgspec.Struct):
    """What one way of answering brought.

    Attributes:
        shares: each question's share of evidence, by budget.
        unsaid: characters of the blocks for questions about what was never said.
        ms: milliseconds of each question.
    """

    shares: dict[int, list[float]] = msgspec.field(default_factory=lambda: {b: [] for b in BUDGETS})
    unsaid: list[int] = []
    ms: list[float] = []

    def extend(self, other: "Row") -> None:
        """Add another one's questions."""
        for budget, found in other.shares.items():
            self.shares[budget] += found
        self.unsaid += other.unsaid
        self.ms += other.ms


Rows = dict[str, Row]


def ask(conversation: Conversation, block_for: BlockFor) -> Row:
    """Ask everything of one conversation."""
    row = Row({budget: shares(conversation, block_for, budget) for budget in BUDGETS})
    row.unsaid = [len(block_for(question, USUAL_BUDGET)) for question in conversation.unsaid]
    for asked in conversation.asked:
        began = time.perf_counter()
        block_for(asked.question, USUAL_BUDGET)
        row.ms.append((time.perf_counter() - began) * 1_000)
    return row


def ask_alone(
    conversation: Conversation,
    other: Conversation,
    options: Mapping[str, object],
    facts: str = "",
) -> Rows:
    """Ask the provider alone, also amid text of another conversation."""
    with tempfile.TemporaryDirectory() as home, opened(Path(home), options) as provider:
        told = list(turns(conversation))
        feed(provider, told)
        if facts:
            conclude(provider, told, facts)
        if options:
            await_vectors(provider.path)
        block_for = alone(provider)
        amid = {b: shares_amid(conversation, other, block_for, b) for b in BUDGETS}
        return {ALONE: ask(conversation, block_for), "alone, amid others": Row(amid)}


def ask_floors(conversation: Conversation) -> Rows:
    """Ask plain BM25 over all pieces, and over the person's own."""
    person = conversation.speakers[0]
    every = [said.text for said in conversation.said]
    own = [said.text for said in conversation.said if said.speaker == person]
    floors = {"BM25": every, "BM25, person": own}
    return {name: ask(conversation, plain(Bm25(texts))) for name, texts in floors.items()}


@contextmanager
def through_the_bus(
    conversations: Sequence[Conversation], options: Mapping[str, object]
) -> Iterator[Callable[[Conversation], BlockFor]]:
    """Publish conversations; yield what returns how the bus answers for one of them."""
    given: dict[str, Any] = {PROVIDER: dict(options)}
    with ExitStack() as running:
        stage = running.enter_context(Stage(providers=(PROVIDER,), provider=given))
        running.enter_context(stage.worker(stage.settings, jobs=1))
        bus = running.enter_context(MemoryBus.connect(stage.settings))
        publish(bus, conversations)
        stage.await_applied(PROVIDER)
        if options:
            home = stage.settings.provider_home(PROVIDER)
            await_vectors(HolographicProvider(ProviderConfig(name=PROVIDER, home=home)).path)
        yield lambda conversation: _bus_block(bus, conversation.name)


def publish(bus: MemoryBus, conversations: Sequence[Conversation]) -> None:
    """Publish each conversation as a person's own, named as it is."""
    for conversation in conversations:
        for turn, session, at in turns(conversation):
            bus.session(session, user=conversation.name, warm=False, at=at).turn_completed(
                turn.user,
                turn.assistant,
                user_name=turn.user_name,
                assistant_name=turn.assistant_name,
                at=at,
            )
    if not bus.flush("logged", WAIT_SECONDS):
        raise TimeoutError(f"the log took no events: {bus.problem}")


def _bus_block(bus: MemoryBus, user: str) -> BlockFor:
    def block_for(question: str, budget: int) -> str:
        recalled = bus.recall(
            question, user=user, providers=[PROVIDER], budget=budget, timeout=WAIT_SECONDS
        )
        if recalled.missing:
            raise RuntimeError(f"no answer to {question!r}: {recalled.missing}")
        return recalled.text

    return block_for


def measure(
    conversations: Sequence[Conversation],
    options: Mapping[str, object],
    console: Console,
    *,
    with_bus: bool,
    facts: str = "",
) -> Rows:
    """Ask everything in every way; return the rows of the table."""
    rows: Rows = {}
    with ExitStack() as running:
        bus = running.enter_context(through_the_bus(conversations, options)) if with_bus else None
        others = [*conversations[1:], *conversations[:1]]
        for one, other in zip(track(conversations, "asking", console=console), others, strict=True):
            ways = ask_alone(one, other, options, facts) | ask_floors(one)
            ways = ({BUS: ask(one, bus(one))} if bus else {}) | ways
            first = next(iter(ways.values()))
            for name, row in (*ways.items(), *parts(one, first).items()):
                rows.setdefault(name, Row()).extend(row)
    return rows


def parts(conversation: Conversation, row: Row) -> Rows:
    """Return a conversation's own row, and those of its questions' categories."""
    kinds = [asked.category for asked, _ in conversation.answerable()]
    found: Rows = {f"  {conversation.name}": row}
    for kind in dict.fromkeys(kinds):
        found[f"  {kind}"] = Row(
            {
                budget: [share for share, of in zip(given, kinds, strict=True) if of == kind]
                for budget, given in row.shares.items()
            }
        )
    return found


def table(title: str, rows: Rows) -> Table:
    """Return what is printed."""
    columns = ("asked", *(f"{b:,}" for b in BUDGETS), "unsaid", "p50", "p99")
    shown = Table("", *(Column(name, no_wrap=True) for name in columns), padding=0)
    shown.title = f"{title}: evidence in a block of so many characters; milliseconds"
    for name, row in rows.items():
        means = (f"{statistics.fmean(row.shares[budget]):.3f}" for budget in BUDGETS)
        unsaid = f"{statistics.median(row.unsaid):,.0f}" if row.unsaid else ""
        times = (f"{p50(row.ms):.1f}", f"{p99(row.ms):.1f}") if row.ms else ("", "")
        shown.add_row(name, str(len(row.shares[USUAL_BUDGET])), *means, unsaid, *times)
    return shown


def differing(rows: Rows) -> dict[int, int]:
    """Return by budget for how many questions the bus finds another share than the provider."""
    return {
        budget: sum(a != b for a, b in zip(found, rows[ALONE].shares[budget], strict=True))
        for budget, found in rows[BUS].shares.items()
    }


def figures(title: str, rows: Rows) -> dict[str, float]:
    """Return the rows as numbers by name."""
    return {
        f"{title} {name.strip()} {budget}": statistics.fmean(row.shares[budget])
        for name, row in rows.items()
        for budget in BUDGETS
    }


@contextmanager
def embedder_options(embedder: str, model: str) -> Iterator[Mapping[str, object]]:
    """Give a provider's options; the tests' embedder is there as long as they are needed."""
    if embedder != "deterministic":
        waiting = {"embedder": embedder, "embedder_model": model, "embedder_wait": _VECTOR_SECONDS}
        yield waiting if embedder else NONE
        return
    from helpers.services.embedding_server import embedding_server

    with embedding_server() as server, embedder_options(server.address, embedder) as options:
        yield options


def main() -> int:
    """Parse the arguments, measure, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    standard = [DATA / "beam", LOCOMO]
    parser.add_argument("data", nargs="*", type=Path, default=standard, metavar="DIRECTORY")
    parser.add_argument("--sample", type=int, help="only so many conversations of each directory")
    parser.add_argument("--alone", action="store_true", help="leave the bus out")
    parser.add_argument("--facts", choices=STYLES, default="", help="with facts of this style")
    parser.add_argument("--embedder", default="", help="what makes vectors; words alone without it")
    parser.add_argument("--model", default="", help="the embedder's model")
    options = parser.parse_args()
    console = Console()
    logging.basicConfig(level=logging.ERROR)
    written: dict[str, float] = {}
    for directory in options.data:
        files = sorted(directory.glob("*.json"))[: options.sample]
        if not files:
            console.print(f"no conversations in {directory}; name other directories")
            return 2
        with embedder_options(options.embedder, options.model) as given:
            conversations = [read(path) for path in files]
            rows = measure(
                conversations, given, console, with_bus=not options.alone, facts=options.facts
            )
        console.print(table(directory.name, rows))
        if not options.alone:
            console.print(f"questions for which bus and alone differ, by budget: {differing(rows)}")
        written |= figures(directory.name, rows)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(written, indent=1) + "\n")
    console.print(f"written: {OUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
