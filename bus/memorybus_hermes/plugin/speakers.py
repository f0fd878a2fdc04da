"""Tracks who speaks in the sessions of one instance: a small state of scopes, without effects.

In a chat that several people share, a turn and what happens in it belong to its author. Hermes
names the author only when a turn starts and when it is over. So this module remembers the author of
the current turn, for its recall, tools and writes; the author of the last completed turn, for what
is requested ahead after it; and, by session, who spoke and which words of the window are theirs. An
agent has one turn at a time, and its queue is in order.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from memorybus.events import Scope
from memorybus.ids import text_digest

from memorybus_hermes.plugin.oldest import drop_oldest
from memorybus_hermes.transcripts.scaffolding import opens_turn, text_of, user_text

_MAX_REMEMBERED = 256
"""The most sessions, and the most people and words of each; the oldest are forgotten (G10)."""


class SessionSpeakers:
    """Who spoke in one session, and in which words.

    Attributes:
        said: digests of what was said, each with its speaker; None if two people said the same.
    """

    def __init__(self) -> None:
        self.scopes: OrderedDict[Scope, None] = OrderedDict()
        self.said: OrderedDict[str, Scope | None] = OrderedDict()

    def note(self, scope: Scope, text: str) -> None:
        mark = _mark(text)
        self.scopes[scope] = None
        self.said[mark] = scope if self.said.get(mark, scope) == scope else None
        drop_oldest(self.scopes, _MAX_REMEMBERED)
        drop_oldest(self.said, _MAX_REMEMBERED)

    def copy(self) -> "SessionSpeakers":
        """Return a copy for a session that continues with this one's window."""
        other = SessionSpeakers()
        other.scopes, other.said = self.scopes.copy(), self.said.copy()
        return other


class Speakers:
    """The speakers of all sessions. It is used only under the instance's lock.

    Args:
        scope: the scope of the sessions, from what Hermes passed to `initialize`.

    Attributes:
        last: the author's scope of the last completed turn.
    """

    def __init__(self, scope: Scope, *, shared: bool) -> None:
        self.now = self.last = self._scope = scope  # the author's scope of the current turn
        self._shared = shared
        self._heard: OrderedDict[str, SessionSpeakers] = OrderedDict()

    def started(self, session_id: str, scope: Scope, text: str) -> None:
        """Note the author of a turn that begins."""
        self.now = scope
        self._speakers_of(session_id).note(scope, text)

    def completed(self, session_id: str, scope: Scope, text: str) -> None:
        """Note the author of a turn that is over."""
        self.last = scope
        self._speakers_of(session_id).note(scope, text)

    def others(self, session_id: str) -> list[Scope]:
        return [scope for scope in self._speakers_of(session_id).scopes if scope != self._scope]

    def moved(self, left: str, new_id: str) -> None:
        """Note that a session continues under another id."""
        if new_id not in self._heard:
            self._heard[new_id] = self._speakers_of(left).copy()
            drop_oldest(self._heard, _MAX_REMEMBERED)

    def own(
        self, session_id: str, scope: Scope, window: Sequence[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]:
        """Return those messages of a window that may be published in one scope.

        These are all messages if only the session's own person speaks. Otherwise they are the turns
        that are known to belong to the scope: all others were published in the scopes of their
        authors when they were over.
        """
        heard = self._speakers_of(session_id)
        if not self._shared and scope == self._scope and not self.others(session_id):
            return window
        kept, mine = [], False
        for message in (item for item in window if isinstance(item, Mapping)):
            if opens_turn(message):
                mine = heard.said.get(_mark(text_of(message.get("content")))) == scope
            if mine:
                kept.append(message)
        return kept

    def _speakers_of(self, session_id: str) -> SessionSpeakers:
        heard = self._heard.setdefault(session_id, SessionSpeakers())
        self._heard.move_to_end(session_id)
        drop_oldest(self._heard, _MAX_REMEMBERED)
        return heard


def _mark(text: str) -> str:
    return text_digest(user_text(text).strip())
