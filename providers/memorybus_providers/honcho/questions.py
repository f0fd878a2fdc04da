"""What was asked of Honcho's model, in one file for all recalling instances of a host.

Prompts and turns' ends are recalled by different instances, perhaps in different processes; all
count the same turns and see the same answers. Of prompts it holds digests. The day's budget is one
for all hosts where workers count it (`ProviderConfig.spend`).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.clock import Clock
from memorybus.ids import text_digest

from memorybus_providers.adapters.owners import Owner
from memorybus_providers.base import Spend

_SESSIONS = 1_024
"""Sessions whose turns are counted, the least used go (G10)."""

QUESTIONS = "questions"
"""What is counted over all hosts: questions to Honcho's model."""

_DAY = 86_400_000

_WAIT = 2.0
"""Seconds to wait for another process that writes to the file."""

_TABLES = """
create table if not exists spent(day integer primary key, calls integer not null);
create table if not exists turns(
    owner text not null, session text not null, count integer not null, length integer not null,
    digest text not null, answer text not null, until integer not null, at integer not null,
    primary key (owner, session)
);
"""
_SPEND = """
insert into spent values (:day, 1)
on conflict (day) do update set calls = calls + 1 where calls < :most
"""
_KEEP = """
insert or replace into turns values
(:owner, :session, :count, :length, :digest, :answer, :until, :at)
"""
_OLD = """
delete from turns where at < (select at from turns order by at desc limit 1 offset :most)
"""


class Turn(msgspec.Struct, frozen=True):
    """A session's turns so far.

    Attributes:
        count: how many there were.
        length: characters of the last prompt.
        digest: of the last prompt.
        answer: what was found out last.
        until: until when somebody is asking, milliseconds; 0 if nobody is.
    """

    count: int = 0
    length: int = 0
    digest: str = ""
    answer: str = ""
    until: int = 0

    def is_of(self, prompt: str) -> bool:
        """Say whether a prompt begins with the last one: at its end a turn's answer is added."""
        return bool(self.count) and text_digest(prompt[: self.length]) == self.digest

    def next(self, prompt: str) -> "Turn":
        """Return the turns with one more."""
        digest = text_digest(prompt)
        return msgspec.structs.replace(
            self, count=self.count + 1, length=len(prompt), digest=digest
        )


class AskedFile:
    """The file. Each call opens it, so that any thread may call."""

    def __init__(self, path: Path, most: int, clock: Clock, shared: Spend | None = None) -> None:
        """Open nothing yet.

        Args:
            path: the file.
            most: questions a day (UTC).
            clock: time.
            shared: counts them over all hosts; without it the file counts those of this one.
        """
        self._path, self._most, self._clock, self._shared = path, most, clock, shared

    def spend(self) -> bool:
        """Count a question, if one is left today; say whether it is.

        Raises:
            Unavailable: it is not known how many are left.
        """
        if self._shared is not None:
            return self._shared(QUESTIONS, self._most)
        if not self._most:
            return False
        day = self._clock.now_ms() // _DAY
        with self._open() as db:
            db.execute("delete from spent where day < ?", (day,))
            return db.execute(_SPEND, {"day": day, "most": self._most}).rowcount == 1

    def turn(self, owner: Owner, session: str, prompt: str, every: int, seconds: float) -> Turn:
        """Count a prompt's turn and return the session's, `until` set if this one is to ask.

        Args:
            owner: whose session.
            session: its id.
            prompt: what is asked now.
            every: every how many turns something is asked.
            seconds: how long that may take; nobody else asks meanwhile.
        """
        now = self._clock.now_ms()
        with self._open() as db:
            known = _read(db, owner, session)
            if known.is_of(prompt):
                return msgspec.structs.replace(known, until=0)
            turn = known.next(prompt)
            due = bool(every) and known.until <= now and (turn.count - 1) % every == 0
            until = now + round(1_000 * seconds) if due else known.until
            kept = msgspec.structs.replace(turn, until=until)
            row = {"owner": _whose(owner), "session": session, "at": now}
            db.execute(_KEEP, row | msgspec.structs.asdict(kept))
            db.execute(_OLD, {"most": _SESSIONS - 1})
        return kept if due else msgspec.structs.replace(kept, until=0)

    def answered(self, owner: Owner, session: str, answer: str) -> None:
        """Keep an answer, unless the session was forgotten meanwhile; nobody asks any more."""
        with self._open() as db:
            db.execute(
                "update turns set until = 0, answer = coalesce(nullif(?, ''), answer)"
                " where owner = ? and session = ?",
                (answer, _whose(owner), session),
            )

    def forget(self, owner: Owner) -> None:
        """Erase what was found out for an owner, from the file's free pages, too."""
        with self._open() as db:
            db.execute("delete from turns where owner = ?", (_whose(owner),))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file and a transaction, which commits at the end of the block."""
        private.directory(self._path.parent)
        private.file(self._path)
        with closing(sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None)) as db:
            db.execute("pragma secure_delete = on")
            db.executescript(_TABLES)
            db.execute("begin immediate")
            with db:
                yield db


def _read(db: sqlite3.Connection, owner: Owner, session: str) -> Turn:
    row = db.execute(
        "select count, length, digest, answer, until from turns where owner = ? and session = ?",
        (_whose(owner), session),
    ).fetchone()
    return Turn(*row) if row else Turn()


def _whose(owner: Owner) -> str:
    return msgspec.json.encode(owner).decode()
