"""Who speaks in the sessions of one instance: a small state of scopes, without effects.

In a chat that several people share, a turn and what happens in it belong to its author. Hermes says
who that is when a turn starts and when it is over, and to no other hook. So it is remembered here:
whose turn is under way (its recall, tools and writes), whose was the last that is over (what is
asked ahead after it), and, by session, who spoke and said which words of the window. An agent has
one turn at a time, and its queue is in order.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from memorybus.events import Scope
from memorybus.ids import text_digest
from memorybus.surfaces.hermes.plugin.oldest import drop_oldest
from memorybus.surfaces.hermes.transcripts.scaffolding import opens_turn, text_of, user_text

_REMEMBERED = 256
"""Sessions; and of one, people and what they said (G10). Beyond it the oldest are forgotten."""


class SessionSpeakers:
    """Who spoke in one session, and in which words.

    Attributes:
        scopes: everybody who spoke.
        said: what was said, and by whom; None if two people said the same.
    """

    def __init__(self) -> None:
        """Nothing yet."""
        self.scopes: OrderedDict[Scope, None] = OrderedDict()
        self.said: OrderedDict[str, Scope | None] = OrderedDict()

    def note(self, scope: Scope, text: str) -> None:
        """Note who said something."""
        mark = _mark(text)
        self.scopes[scope] = None
        self.said[mark] = scope if self.said.get(mark, scope) == scope else None
        drop_oldest(self.scopes, _REMEMBERED)
        drop_oldest(self.said, _REMEMBERED)

    def copy(self) -> "SessionSpeakers":
        """Return the same for a session that goes on with this one's window."""
        other = SessionSpeakers()
        other.scopes, other.said = self.scopes.copy(), self.said.copy()
        return other


class Speakers:
    """Who speaks where. It is used under the instance's lock alone.

    Args:
        scope: whose the sessions are, by what `initialize` was told.
        shared: whether several people may speak in them.

    Attributes:
        now: whose turn is under way.
        last: whose turn was over last.
    """

    def __init__(self, scope: Scope, *, shared: bool) -> None:
        """Nobody has spoken yet: what happens is the sessions' own."""
        self.now = self.last = self._scope = scope
        self._shared = shared
        self._heard: OrderedDict[str, SessionSpeakers] = OrderedDict()

    def started(self, session_id: str, scope: Scope, text: str) -> None:
        """Note whose turn begins."""
        self.now = scope
        self._speakers_of(session_id).note(scope, text)

    def completed(self, session_id: str, scope: Scope, text: str) -> None:
        """Note whose turn is over."""
        self.last = scope
        self._speakers_of(session_id).note(scope, text)

    def others(self, session_id: str) -> list[Scope]:
        """Return the scopes of those who spoke in a session that is another's."""
        return [scope for scope in self._speakers_of(session_id).scopes if scope != self._scope]

    def moved(self, left: str, new_id: str) -> None:
        """Note that a session goes on under another id."""
        if new_id not in self._heard:
            self._heard[new_id] = self._speakers_of(left).copy()
            drop_oldest(self._heard, _REMEMBERED)

    def own(
        self, session_id: str, scope: Scope, window: Sequence[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]:
        """Return those messages of a window that may be published as one scope's.

        All, where only the session's own person speaks. Else the turns that are known to be the
        scope's: the others were published as their authors' when they were over.
        """
        heard = self._speakers_of(session_id)
        if not self._shared and scope == self._scope and not self.others(session_id):
            return window
        kept, mine = [], False
        for message in (one for one in window if isinstance(one, Mapping)):
            if opens_turn(message):
                mine = heard.said.get(_mark(text_of(message.get("content")))) == scope
            if mine:
                kept.append(message)
        return kept

    def _speakers_of(self, session_id: str) -> SessionSpeakers:
        heard = self._heard.setdefault(session_id, SessionSpeakers())
        self._heard.move_to_end(session_id)
        drop_oldest(self._heard, _REMEMBERED)
        return heard


def _mark(text: str) -> str:
    return text_digest(user_text(text).strip())
