"""What prompts were given: the record of a block, and the block from its record; pure."""

import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from itertools import zip_longest

import msgspec

from memorybus.errors import CorruptEnvelope
from memorybus.events import (
    Arrival,
    Envelope,
    Recalled,
    Scope,
    SessionRef,
    ShownMemories,
    TurnCompleted,
)
from memorybus.ids import text_digest
from memorybus.recall.answers import Answer
from memorybus.recall.model import WarmResult
from memorybus.text.fence import CLOSE, MAX_BLOCK

_LABEL = re.compile("From (.*):")
_EVENT_ID = re.compile("[0-9a-f]{32}")
_CUT = "…"
_FAST = 1  # zlib's level: half the time of the usual one, and 5 % more bytes


class ShownPrompt(msgspec.Struct):
    """A prompt that was given a block, until it is recorded."""

    scope: Scope  # the session's owner
    session: SessionRef  # the session
    asked: str  # the prompt's words
    block: str  # the block; "" if it was given nothing
    answer: Answer  # the answer from which it was made
    memories: tuple[ShownMemories, ...] | None = None  # those in the block, once they were read


class BlockPart(msgspec.Struct):
    """A provider's label in a block, and its memories, each with all its lines."""

    label: str
    memories: list[str] = []


def build_record(prompt: ShownPrompt, turn: str) -> Recalled:
    return Recalled(
        turn=turn,
        asked=text_digest(prompt.asked),
        memories=_memories_in(prompt),
        block=zlib.compress(prompt.block.encode(errors="surrogatepass"), _FAST),
    )


def recalled_by(prompt: ShownPrompt) -> tuple[ShownMemories, ...]:
    """Return what each provider that was asked gave to a prompt, which may be nothing."""
    answer = prompt.answer
    given = {
        part.provider: ShownMemories(part.provider, part.outcome, part.events)
        for part in _memories_in(prompt)
    }
    for provider in (*answer.ready, *(answer.replies.asked or ())):
        if provider not in given:
            given[provider] = ShownMemories(provider, _arrival(provider, answer))
    return tuple(given.values())


def _memories_in(prompt: ShownPrompt) -> tuple[ShownMemories, ...]:
    if prompt.memories is None:
        sources = dict(_sources(prompt.answer.results)) if prompt.block else {}
        parts = parts_of(prompt.block)[1] if prompt.block else []
        prompt.memories = tuple(_describe(part, prompt.answer, sources) for part in parts)
    return prompt.memories


def _sources(results: Iterable[WarmResult]) -> Iterator[tuple[str, tuple[str, float]]]:
    """Yield lines, each with the event that brought it, or "", and with its score."""
    for result in results:
        for line, event, score in zip(result.lines, result.events, result.scores, strict=False):
            yield line, (event if _EVENT_ID.fullmatch(event) else "", score)


def _describe(
    part: BlockPart, answer: Answer, sources: dict[str, tuple[str, float]]
) -> ShownMemories:
    origins = [sources.get(memory) or _source_of_cut(memory, sources) for memory in part.memories]
    events, scores = zip(*origins, strict=True) if origins else ((), ())
    return ShownMemories(part.label, _arrival(part.label, answer), events, scores)


def _arrival(provider: str, answer: Answer) -> Arrival:
    if provider in answer.ready:
        return "warm"
    return "fresh" if answer.replies.results.get(provider) else "late"


def _source_of_cut(memory: str, sources: dict[str, tuple[str, float]]) -> tuple[str, float]:
    beginning = memory.removesuffix(_CUT)
    lines = (line for line in sources if beginning != memory and line.startswith(beginning))
    return sources.get(next(lines, ""), ("", 0.0))


def parts_of(block: str) -> tuple[list[str], list[BlockPart], list[str]]:
    """Return what stands above a block's parts, these parts, and what stands below them."""
    above: list[str] = []
    parts: list[BlockPart] = []
    lines = block.split("\n")
    below = [lines.pop()] if lines[-1] == CLOSE else []
    for line in lines:
        if label := _LABEL.fullmatch(line):
            parts.append(BlockPart(label[1]))
        elif not parts:
            above.append(line)
        elif line.startswith("  ") and parts[-1].memories:
            parts[-1].memories[-1] += f"\n{line}"
        else:
            parts[-1].memories.append(line)
    return above, parts, below


def shown_block(record: Recalled) -> str:
    try:
        unpacked = zlib.decompressobj().decompress(record.block, 4 * MAX_BLOCK)
        return unpacked.decode(errors="surrogatepass")
    except (zlib.error, UnicodeDecodeError) as error:
        raise CorruptEnvelope(
            f"the record of this prompt is damaged ({error}); another turn has a record of its own"
        ) from error


def block_without(record: Recalled, events: Collection[str]) -> str:
    """Return a recorded block without the memories that some events brought; "" if none is left."""
    above, parts, below = parts_of(shown_block(record))
    left: list[str] = []
    for part, memories in zip(parts, record.memories, strict=False):
        known = memories.events[: len(part.memories)]
        pairs = zip_longest(part.memories, known, fillvalue="")
        kept = [text for text, event in pairs if event not in events]
        left += [f"From {part.label}:", *kept] if kept else []
    return "\n".join((*above, *left, *below)) if left else ""


def record_of(turn: Envelope, newest_first: Iterable[Envelope]) -> Recalled | None:
    """Return the record of what a turn's prompt was given; None if there is none.

    A record names its turn. One that another process made names none, since the turn came later:
    it is the newest one before the turn with the same words.
    """
    if not isinstance(turn.event, TurnCompleted):
        return None
    asked, passed = text_digest(turn.event.user), False
    for envelope in (each for each in newest_first if each.key == turn.key):
        event = envelope.event
        if envelope.id == turn.id:
            passed = True
        elif isinstance(event, Recalled):
            if event.turn == turn.id or (passed and not event.turn and event.asked == asked):
                return event
        elif passed:  # the turn before, or the session's beginning
            return None
    return None
