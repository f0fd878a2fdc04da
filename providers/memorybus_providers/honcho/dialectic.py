"""Questions to Honcho's own model: every few turns, so many a day, never in anybody's way.

An answer takes seconds and costs money. So it is asked beside the recall, in a thread, and stands
beside what the session's next recalls find.
"""

import logging
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.clock import Clock
from memorybus.errors import ProviderError

from memorybus_providers.adapters.owners import Owner
from memorybus_providers.honcho.options import Level, Options

_log = logging.getLogger("memorybus")

Ask = Callable[[str, Level], str]
"""Puts a question to the model: the question, how hard to think; returns the answer or ""."""

_SESSIONS = 1_024
"""Sessions whose turns are counted, the least used go (G10)."""

_DAY = 86_400_000
_TABLE = "create table if not exists spent(day integer primary key, calls integer not null)"
_SPEND = """
insert into spent values (:day, 1)
on conflict (day) do update set calls = calls + 1 where calls < :most
"""


class Budget:
    """So many questions a day (UTC), counted for all processes of this host in one file."""

    def __init__(self, file: Path, most: int, clock: Clock) -> None:
        """Open nothing before the first question."""
        self._file, self._most, self._clock = file, most, clock

    def spend(self) -> bool:
        """Count a question, if one is left today; say whether it is."""
        if not self._most:
            return False
        private.directory(self._file.parent)
        private.file(self._file)
        today = self._clock.now_ms() // _DAY
        with closing(sqlite3.connect(self._file, timeout=5.0)) as db, db:
            db.execute(_TABLE)
            db.execute("delete from spent where day < ?", (today,))
            return db.execute(_SPEND, {"day": today, "most": self._most}).rowcount == 1


class _Turns(msgspec.Struct):
    """What is known of a session: its turns, its last prompt, what was found out last."""

    count: int = 0
    prompt: str = ""
    answer: str = ""
    asking: bool = False


class Dialectic:
    """Counts turns by their prompts, and asks when it is time to."""

    def __init__(self, options: Options, budget: Budget) -> None:
        """Know no session yet."""
        self._options, self._budget = options, budget
        self._lock = threading.Lock()
        self._sessions: OrderedDict[tuple[Owner, str], _Turns] = OrderedDict()

    def supplement(self, owner: Owner, session: str, prompt: str, ask: Ask) -> str:
        """Return what was found out last in a session, and ask anew if it is time to.

        A prompt that begins with the one before it is of the same turn: at a turn's end the bus
        asks with its answer added.
        """
        with self._lock:
            turns = self._turns(owner, session)
            if not (turns.prompt and prompt.startswith(turns.prompt)):
                turns.count += 1
                turns.prompt = prompt
                if self._is_due(turns):
                    turns.asking = True
                    name = "memorybus-dialectic"
                    threading.Thread(
                        target=self._ask, args=(turns, prompt, ask), name=name, daemon=True
                    ).start()
            return turns.answer

    def answer(self, question: str, level: Level, ask: Ask) -> str | None:
        """Put one question now; None if today's are spent.

        Raises:
            ProviderError: Honcho does not answer.
        """
        return ask(question, level) if self._budget.spend() else None

    def forget(self, owner: Owner) -> None:
        """Forget what was found out for an owner."""
        with self._lock:
            for key in [key for key in self._sessions if key[0] == owner]:
                del self._sessions[key]

    def _turns(self, owner: Owner, session: str) -> _Turns:
        found = self._sessions.setdefault((owner, session), _Turns())
        self._sessions.move_to_end((owner, session))
        while len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return found

    def _is_due(self, turns: _Turns) -> bool:
        every = self._options.dialectic_every
        return bool(every) and not turns.asking and (turns.count - 1) % every == 0

    def _ask(self, turns: _Turns, prompt: str, ask: Ask) -> None:
        """Ask, and question each answer in turn, as deep as the options say."""
        try:
            for depth in range(self._options.dialectic_depth):
                asked = _wording(prompt, turns.answer, depth)
                found = self.answer(asked, self._options.dialectic_level, ask)
                turns.answer = found or turns.answer
        except (ProviderError, sqlite3.Error) as error:
            _log.warning("Honcho's model was not asked: %s", error)
        finally:
            turns.asking = False


def _wording(prompt: str, found: str, depth: int) -> str:
    """Return the question of a depth."""
    if not depth or not found:
        return f"What is known of this person that helps to answer this?\n\n{prompt}"
    return (
        f"Asked what of this person helps to answer the text below, you said:\n\n{found}\n\n"
        "What of it is outdated, contradicted or missing? Give the corrected answer, in short."
        f"\n\n{prompt}"
    )
