"""Measure recall of the holographic provider alone: no Redis, no bus, one process.

``python bench/recall_lab.py [DIRECTORY]`` feeds each conversation of the directory, of LoCoMo (two
people) or BEAM (a person and an assistant), into a fresh provider and prints the mean share of each
question's evidence that stands in a memory block of a budget of characters; then the mean length of
a block, and the medians of the blocks of questions for what was never said, and of another
conversation's questions. A source counts as found if a piece of at least 60 characters of it stands
in the block. The last rows are of every second question amid text of another conversation, and of
plain BM25 (see `recall.floors`) over all pieces and over those of the person alone.

``--speed N`` measures writes and recall with N facts made of the same utterances instead.
``--embedder ADDRESS --model NAME`` (or a directory) measures with search by meaning, ``--embedder
deterministic`` with the embedder of the tests, whose meanings are few: it shows that what is hardly
near takes no room (PYTHONPATH=tests).
"""

import argparse
import json
import random
import re
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from memorybus.events import Position, Scope, SessionRef, TurnCompleted
from memorybus.ids import derived_id
from memorybus.text.fence import build_block, line
from memorybus_providers.base import (
    Fence,
    HookContext,
    Progress,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
)
from memorybus_providers.holographic import HolographicProvider
from recall.floors import Bm25

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo"
PROVIDER = "holographic"
COUNTED = {4: "one turn", 1: "several turns", 2: "times", 3: "open"}
"""The categories that count, in the words of the table."""

UNSAID_CATEGORY = 5
"""The category that asks for what was never said, in words that were."""

UNSAID_KIND = "abstention"
"""The same category of BEAM."""

LEAST_PIECE = 60
"""Characters of a source that must stand in a block together; a shorter source stands whole."""

BUDGETS = (1_000, 2_000, 4_000)
USUAL_BUDGET = 2_000
"""The budget at which lengths are told."""

NONE: Mapping[str, object] = MappingProxyType({})
"""Words alone."""

BATCH = 500
MS = 1_000
VECTOR_SECONDS = 10.0
"""Seconds for a question's vector: what is measured is the answer with it."""


Columns = dict[int, list[float]]
"""The shares of questions, by the budget of the block."""


class Said(msgspec.Struct, frozen=True):
    """One utterance of a conversation."""

    id: str
    speaker: str
    text: str
    session: str
    at: int


class Asked(msgspec.Struct, frozen=True):
    """One question, the ids of the utterances that answer it, and its category in words."""

    question: str
    evidence: tuple[str, ...]
    category: str


class Conversation(msgspec.Struct, frozen=True):
    """A file of either collection; what `unsaid` asks for was never said."""

    name: str
    speakers: tuple[str, str]
    said: tuple[Said, ...]
    asked: tuple[Asked, ...]
    unsaid: tuple[str, ...]

    def answerable(self) -> list[tuple[Asked, list[str]]]:
        """Return the questions that have evidence, with its texts."""
        found = [(asked, self.texts(asked.evidence)) for asked in self.asked]
        return [(asked, texts) for asked, texts in found if texts]

    def texts(self, ids: Sequence[str]) -> list[str]:
        """Return the utterances of these ids; ids that do not exist are mistakes of the file."""
        known = {said.id: said.text for said in self.said}
        return [known[name] for name in ids if name in known]


def read(path: Path) -> Conversation:
    """Read one file, whichever collection it is of."""
    raw = json.loads(path.read_text())
    return _beam(path.stem, raw) if "messages" in raw else _locomo(path.stem, raw)


def _beam(name: str, raw: dict[str, Any]) -> Conversation:
    messages = raw["messages"]
    said = tuple(
        Said(str(one["id"]), one["role"], one["content"], name, _day(one["date"]) + place * MS)
        for place, one in enumerate(messages)
    )
    asked = tuple(
        Asked(one["question"], tuple(map(str, one["evidence"])), one["category"].replace("_", " "))
        for one in raw["questions"]
    )
    unsaid = tuple(one.question for one in asked if one.category == UNSAID_KIND)
    return Conversation(name, ("user", "assistant"), said, asked, unsaid)


def _day(written: str) -> int:
    return int(datetime.strptime(written, "%B-%d-%Y").replace(tzinfo=UTC).timestamp()) * MS


def _locomo(name: str, raw: dict[str, Any]) -> Conversation:
    sessions = sorted(
        (name for name in raw if re.fullmatch(r"session_\d+", name)),
        key=lambda name: int(name.split("_")[1]),
    )
    said = tuple(
        Said(turn["dia_id"], turn["speaker"], _text(turn), session, _at(raw, session))
        for session in sessions
        for turn in raw[session]
    )
    asked = tuple(
        Asked(
            qa["question"],
            tuple(re.findall(r"D\d+:\d+", " ".join(qa["evidence"]))),
            COUNTED[qa["category"]],
        )
        for qa in raw["qa"]
        if qa["category"] in COUNTED
    )
    unsaid = tuple(qa["question"] for qa in raw["qa"] if qa["category"] == UNSAID_CATEGORY)
    return Conversation(name, (raw["speaker_a"], raw["speaker_b"]), said, asked, unsaid)


def turns(conversation: Conversation) -> Iterator[tuple[TurnCompleted, str, int]]:
    """Yield (turn, session, at): the first speaker is the user, and what answers it the agent."""
    user, agent = conversation.speakers
    waiting: Said | None = None
    for said in conversation.said:
        if waiting and (said.speaker == user or said.session != waiting.session):
            yield _turn(waiting, None, user, agent)
            waiting = None
        if said.speaker == user:
            waiting = said
        else:
            yield _turn(waiting, said, user, agent)
            waiting = None
    if waiting:
        yield _turn(waiting, None, user, agent)


def block(recalled: Sequence[Recollection], budget: int) -> str:
    """Return the memory block of these, as a worker and an agent make it."""
    lines: list[str] = []
    left = budget
    for one in recalled:
        shown = line(one.text, at=one.at, speaker=one.speaker)
        if len(shown) < left:
            lines.append(shown)
            left -= len(shown) + 1
    return build_block([(PROVIDER, lines)], budget)


def share_found(recalled: Sequence[Recollection], evidence: Sequence[str], budget: int) -> float:
    """Return the share of the sources of which a piece stands in a block of this budget."""
    shown = _spaced(block(recalled, budget))
    pieces = {shown[start : start + LEAST_PIECE] for start in range(len(shown))}
    return sum(_stands_in(text, shown, pieces) for text in evidence) / len(evidence)


def _stands_in(text: str, shown: str, pieces: Collection[str]) -> bool:
    escaped = _spaced(line(text).removeprefix("- "))
    if len(escaped) < LEAST_PIECE:
        return escaped in shown
    starts = range(len(escaped) - LEAST_PIECE + 1)
    return any(escaped[start : start + LEAST_PIECE] in pieces for start in starts)


def _spaced(text: str) -> str:
    return " ".join(text.split())


@contextmanager
def opened(home: Path, options: Mapping[str, object] = NONE) -> Iterator[HolographicProvider]:
    """Open a provider in a directory."""
    config = ProviderConfig(name="holographic", home=home, options=options)
    provider = HolographicProvider(config)
    provider.open()
    try:
        yield provider
    finally:
        provider.shutdown()


def feed(
    provider: HolographicProvider,
    events: Sequence[tuple[TurnCompleted, str, int]],
    prefix: str = "",
) -> None:
    """Apply turns as a lane does: in batches, each one transaction."""
    for start in range(0, len(events), BATCH):
        batch = events[start : start + BATCH]
        ids = [derived_id(prefix, start + i) for i in range(len(batch))]
        with provider.transaction(Fence("p00", 1)) as transaction:
            for event_id, (event, session, at) in zip(ids, batch, strict=True):
                provider.sync_turn(event, _context(event_id, session, at))
            transaction.record(ids, Progress(1, f"{start + 1}-0", start + len(batch)))


def await_vectors(provider: HolographicProvider) -> None:
    """Wait until every fact has a vector."""
    with closing(sqlite3.connect(provider.path)) as db:
        have = "select 1 from sqlite_master where name = 'meaning_model'"
        lack = "select 1 from meaning_missing limit 1"
        while not db.execute(have).fetchone() or db.execute(lack).fetchone():
            time.sleep(0.05)


def mean_share(
    provider: HolographicProvider, conversation: Conversation, budget: int
) -> list[float]:
    """Return each question's share of evidence found."""
    return [
        share_found(asked_for(provider, asked.question, budget), texts, budget)
        for asked, texts in conversation.answerable()
    ]


def shares_amid(
    provider: HolographicProvider, conversation: Conversation, other: Conversation, budget: int
) -> list[float]:
    """Return what `mean_share` does for every second question, asked amid another conversation.

    Three utterances stand around the question, without question marks: 90 words on average.
    """
    rng = random.Random(7)
    told = [said.text.replace("?", ".") for said in other.said]
    shares = []
    for asked, texts in conversation.answerable()[::2]:
        parts = rng.sample(told, 3)
        parts.insert(rng.randrange(4), f"{asked.question.rstrip('?. ')}?")
        found = asked_for(provider, " ".join(parts), budget)
        shares.append(share_found(found, texts, budget))
    return shares


def lengths(
    provider: HolographicProvider, questions: Iterable[str], budget: int = USUAL_BUDGET
) -> list[int]:
    """Return the lengths of the blocks that questions get, in characters."""
    return [len(block(asked_for(provider, one, budget), budget)) for one in questions]


def asked_for(provider: HolographicProvider, question: str, budget: int) -> Sequence[Recollection]:
    """Return what a question gets within a budget."""
    return provider.prefetch(question, RecallContext(RecallScope(), budget=budget))


def _text(turn: dict[str, str]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [photo: {caption}]" if caption else turn["text"]


def _at(raw: dict[str, str], session: str) -> int:
    said = datetime.strptime(raw[f"{session}_date_time"] + " +0000", "%I:%M %p on %d %B, %Y %z")
    return int(said.timestamp()) * MS


def _turn(
    asked: Said | None, answered: Said | None, user: str, agent: str
) -> tuple[TurnCompleted, str, int]:
    first = asked or answered
    if first is None:
        raise ValueError("a turn needs a side")
    event = TurnCompleted(
        user=asked.text if asked else "",
        assistant=answered.text if answered else "",
        user_name="" if user == "user" else user,
        assistant_name="" if agent == "assistant" else agent,
    )
    return event, first.session, first.at


def _context(event_id: str, session: str, at: int) -> HookContext:
    return HookContext(
        Scope(), SessionRef(session, session), event_id, Position(0, "1-0", 1), at, 5.0
    )


@contextmanager
def embedder_options(embedder: str, model: str) -> Iterator[Mapping[str, object]]:
    """Give a provider's options; the deterministic embedder is there as long as they are needed."""
    if embedder != "deterministic":
        waiting = {"embedder": embedder, "embedder_model": model, "embedder_wait": VECTOR_SECONDS}
        yield waiting if embedder else NONE
        return
    from helpers.services.embedding_server import embedding_server

    with embedding_server() as server, embedder_options(server.address, embedder) as options:
        yield options


def report_recall(directory: Path, options: Mapping[str, object]) -> None:
    """Print the share of evidence by conversation and by category, and the blocks' lengths."""
    conversations = [read(path) for path in sorted(directory.glob("*.json"))]
    print(f"{'':25} questions   1,000   2,000   4,000   chars   unsaid   others'   p50 ms")
    rows: dict[str, Columns] = {}
    for conversation, other in zip(conversations, _rotated(conversations), strict=True):
        with tempfile.TemporaryDirectory() as home, opened(Path(home), options) as provider:
            feed(provider, list(turns(conversation)))
            if options:
                await_vectors(provider)
            columns = {budget: mean_share(provider, conversation, budget) for budget in BUDGETS}
            print(_row(conversation.name, columns), _lengths(provider, conversation, other))
            amid = {b: shares_amid(provider, conversation, other, b) for b in BUDGETS}
        found = {"all": columns, "amid others": amid, **_floors(conversation)}
        for label, part in {**_by_category(conversation, columns), **found}.items():
            for budget, shares in part.items():
                rows.setdefault(label, {}).setdefault(budget, []).extend(shares)
    for label, columns in rows.items():
        print(_row(label, columns))


def _by_category(conversation: Conversation, columns: Columns) -> dict[str, Columns]:
    kinds = [asked.category for asked, _ in conversation.answerable()]
    return {
        kind: {
            budget: [share for share, of in zip(shares, kinds, strict=True) if of == kind]
            for budget, shares in columns.items()
        }
        for kind in dict.fromkeys(kinds)
    }


def _floors(conversation: Conversation) -> dict[str, Columns]:
    """Return the shares that plain BM25 finds: over all pieces, and over the person's own."""
    own = [said.text for said in conversation.said if said.speaker == conversation.speakers[0]]
    every = [said.text for said in conversation.said]
    ranked = {"BM25": Bm25(every), "BM25, person": Bm25(own)}
    return {
        label: {
            budget: [
                share_found(_as_recalled(floor.best(asked.question, budget)), texts, budget)
                for asked, texts in conversation.answerable()
            ]
            for budget in BUDGETS
        }
        for label, floor in ranked.items()
    }


def _as_recalled(texts: Iterable[str]) -> list[Recollection]:
    return [Recollection(text) for text in texts]


def _lengths(provider: HolographicProvider, conversation: Conversation, other: Conversation) -> str:
    """Return the mean length of a block, and the medians of blocks that should be empty."""
    questions = [asked.question for asked in conversation.asked]
    mean = statistics.fmean(lengths(provider, questions))
    unsaid = statistics.median(lengths(provider, conversation.unsaid))
    others = statistics.median(lengths(provider, [asked.question for asked in other.asked]))
    return f"{mean:7.0f} {unsaid:8.0f} {others:9.0f} {_p50_ms(provider, questions):8.2f}"


def _rotated(conversations: Sequence[Conversation]) -> list[Conversation]:
    """Return for each conversation another one, whose questions are asked of it."""
    return [*conversations[1:], *conversations[:1]]


def report_speed(directory: Path, facts: int) -> None:
    """Print how fast turns are applied and questions answered with a long history."""
    conversations = [read(path) for path in sorted(directory.glob("*.json"))]
    events = [turn for conversation in conversations for turn in turns(conversation)]
    questions = [a.question for conversation in conversations for a in conversation.asked][::8]
    with tempfile.TemporaryDirectory() as home, opened(Path(home)) as provider:
        written, spent, copy = 0, 0.0, 0
        while written * 2 < facts:
            copied = [(event, f"{session}-{copy}", at) for event, session, at in events]
            began = time.perf_counter()
            feed(provider, copied, str(copy))
            spent += time.perf_counter() - began
            written, copy = written + len(copied), copy + 1
        print(f"{written} turns: {written / spent:,.0f} turns/s")
        print(f"recall p50 {_p50_ms(provider, questions):.2f} ms")


def _p50_ms(provider: HolographicProvider, questions: Sequence[str]) -> float:
    spent = []
    for question in questions:
        began = time.perf_counter()
        provider.prefetch(question, RecallContext(RecallScope()))
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * MS


def _row(name: str, columns: Mapping[int, Sequence[float]]) -> str:
    means = " ".join(f"{statistics.fmean(columns[budget]):7.3f}" for budget in BUDGETS)
    return f"{name:25} {len(columns[USUAL_BUDGET]):9} {means}"


def main() -> None:
    """Read the arguments and print one report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=DATA)
    parser.add_argument("--speed", type=int, metavar="N", help="measure speed with N facts")
    parser.add_argument(
        "--embedder", default="", help="what makes vectors; words alone if not given"
    )
    parser.add_argument("--model", default="", help="the embedder's model")
    arguments = parser.parse_args()
    if not any(arguments.directory.glob("*.json")):
        parser.error(f"there is no conversation in {arguments.directory}")
    if arguments.speed:
        report_speed(arguments.directory, arguments.speed)
    else:
        with embedder_options(arguments.embedder, arguments.model) as options:
            report_recall(arguments.directory, options)


if __name__ == "__main__":
    main()
