"""Recall of the holographic provider alone: no Redis, no bus, one process.

It reads the conversations of LoCoMo (two people) and BEAM (a person and an assistant), feeds one
into a fresh provider, and measures each question's share of evidence in a memory block of a budget
of characters. A source counts as found if a piece of at least 60 characters of it stands in the
block. `recall.evidence` is the program, which measures the same through the bus.
"""

import json
import random
import re
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from memorybus.events import Position, Scope, SessionRef, TurnCompleted
from memorybus.ids import derived_id
from memorybus.recall.model import RecallRequest
from memorybus.text.fence import build_block, line
from memorybus_providers.base import (
    Fence,
    HookContext,
    Progress,
    ProviderConfig,
    RecallContext,
    RecallScope,
)
from memorybus_providers.holographic import HolographicProvider
from memorybus_workers.jobs.prefetch import render
from recall.floors import Bm25

PROVIDER = "holographic"
COUNTED = {4: "one turn", 1: "several turns", 2: "times", 3: "open"}
"""The categories that count, in the words of the table."""

UNSAID_CATEGORY = 5
"""The category that asks for what was never said, in words that were."""

UNSAID_KIND = "abstention"
"""The same category of BEAM."""

LEAST_PIECE = 60
"""Characters of a source that must stand in a block together; a shorter source stands whole."""

NONE: Mapping[str, object] = MappingProxyType({})
"""Words alone."""

BATCH = 500
MS = 1_000

SCOPE = Scope()
"""Whose the conversation is, where a provider is measured alone."""

BlockFor = Callable[[str, int], str]
"""Returns the block for a question within a budget of characters."""


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


def shares(conversation: Conversation, block_for: BlockFor, budget: int) -> list[float]:
    """Return each question's share of evidence in the block that it gets."""
    return [
        share_found(block_for(asked.question, budget), texts)
        for asked, texts in conversation.answerable()
    ]


def alone(provider: HolographicProvider, scope: Scope = SCOPE) -> BlockFor:
    """Return how a provider alone answers: the block that a worker and an agent make of it."""
    asker = RecallScope(scope.agent, scope.user, scope.workspace)

    def block_for(question: str, budget: int) -> str:
        recalled = provider.prefetch(question, RecallContext(asker, budget=budget))
        want = RecallRequest(question, budget=budget)
        return build_block([(PROVIDER, render(recalled, want, PROVIDER).lines)], budget)

    return block_for


def plain(floor: Bm25) -> BlockFor:
    """Return how plain BM25 answers."""

    def block_for(question: str, budget: int) -> str:
        return build_block(
            [("BM25", [line(text) for text in floor.best(question, budget)])], budget
        )

    return block_for


def share_found(block: str, evidence: Sequence[str]) -> float:
    """Return the share of the sources of which a piece stands in a block."""
    shown = _spaced(block)
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
        ids = [turn_id(start + i, prefix) for i in range(len(batch))]
        with provider.transaction(Fence("p00", 1)) as transaction:
            for event_id, (event, session, at) in zip(ids, batch, strict=True):
                provider.sync_turn(event, context_of(event_id, session, at))
            transaction.record(ids, Progress(1, f"{start + 1}-0", start + len(batch)))


def turn_id(number: int, prefix: str = "") -> str:
    """Return the id of a turn's event in `feed`."""
    return derived_id(prefix, number)


def await_vectors(path: Path) -> None:
    """Wait until every fact of a provider's file has a vector."""
    with closing(sqlite3.connect(path)) as db:
        have = "select 1 from sqlite_master where name = 'meaning_model'"
        lack = "select 1 from meaning_missing limit 1"
        while not db.execute(have).fetchone() or db.execute(lack).fetchone():
            time.sleep(0.05)


def mean_share(
    provider: HolographicProvider, conversation: Conversation, budget: int
) -> list[float]:
    """Return each question's share of evidence that a provider alone finds."""
    return shares(conversation, alone(provider), budget)


def shares_amid(
    conversation: Conversation, other: Conversation, block_for: BlockFor, budget: int
) -> list[float]:
    """Return what `shares` does for every second question, asked amid another conversation.

    Three utterances stand around the question, without question marks: 90 words on average.
    """
    rng = random.Random(7)
    told = [said.text.replace("?", ".") for said in other.said]
    found = []
    for asked, texts in conversation.answerable()[::2]:
        parts = rng.sample(told, 3)
        parts.insert(rng.randrange(4), f"{asked.question.rstrip('?. ')}?")
        found.append(share_found(block_for(" ".join(parts), budget), texts))
    return found


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


def context_of(event_id: str, session: str, at: int) -> HookContext:
    """Return the context of an event, milliseconds."""
    return HookContext(
        SCOPE, SessionRef(session, session), event_id, Position(0, "1-0", 1), at, 5.0
    )
