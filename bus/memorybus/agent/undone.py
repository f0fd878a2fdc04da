"""Remembers what the turns of this process said, so that a compression leaves out undone ones."""

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping

import msgspec

from memorybus.events import Message, TurnCompleted
from memorybus.recall.lines import message_texts

_NO_TEXT = hash("")
_MAX_TURNS = 4_096  # the most turns that are remembered, the newest of all sessions (G10)


class _Turn(msgspec.Struct):
    key: str
    texts: set[int]
    undone: bool = False


class PublishedTurns:
    """The texts of the newest turns, as hashes. Safe to call from any thread."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, _Turn] = OrderedDict()

    def note(self, key: str, event_id: str, turn: TurnCompleted) -> None:
        texts = {hash(turn.user), hash(turn.assistant)}
        for message in turn.messages:
            texts.update(_hashes(message))
        texts.discard(_NO_TEXT)
        self._turns.setdefault(event_id, _Turn(key, texts))  # one that comes again stays undone
        if len(self._turns) > _MAX_TURNS:
            self._turns.popitem(last=False)

    def undo(self, event_ids: Collection[str]) -> None:
        """Note that turns were taken back; unknown ids are ignored."""
        for event_id in event_ids:
            if turn := self._turns.get(event_id):
                turn.undone = True

    def standing(self, key: str, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages without those that only undone turns of an order key have said."""
        turns = [turn for turn in list(self._turns.values()) if turn.key == key]
        undone = {text for turn in turns if turn.undone for text in turn.texts}
        undone.difference_update(*(turn.texts for turn in turns if not turn.undone))
        if not undone:
            return messages
        return tuple(message for message in messages if undone.isdisjoint(_hashes(message)))


def _hashes(message: object) -> Iterator[int]:
    """Yield the hashes of a message's texts, and of the calls of tools that it makes."""
    yield from (hash(text) for text in message_texts(message) if text)
    if isinstance(message, Mapping) and (calls := message.get("tool_calls")):
        yield hash(msgspec.json.encode(calls))
