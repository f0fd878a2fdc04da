"""Counts questions to Honcho's model in one file, for all instances of a host that recall.

Different instances, perhaps in different processes, recall for prompts and for the ends of turns.
All of them count the same turns and see the same answers. The file contains digests of prompts, but
not their texts. If workers count the questions (`ProviderConfig.spend`), the daily budget is shared
by all hosts.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.clock import Clock
from memorybus.ids import text_digest

from memorybus_providers.base import Spend
from memorybus_providers.owners import Owner

_MAX_SESSIONS = 1_024
"""The most sessions whose turns are counted; the least recently used are dropped first (G10)."""

QUESTIONS = "questions"
"""The name under which questions to Honcho's model are counted over all hosts."""

_DAY = 86_400_000

_LOCK_WAIT_SECONDS = 2.0
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
_KEEP_TURN = """
insert or replace into turns values
(:owner, :session, :count, :length, :digest, :answer, :until, :at)
"""
_DELETE_OLD = """
delete from turns where at < (select at from turns order by at desc limit 1 offset :most)
"""


class Turn(msgspec.Struct, frozen=True):
    """The turns of a session so far.

    Attributes:
        count: how many turns there were.
        length: characters of the last prompt.
        digest: the digest of the last prompt.
        answer: the model's last answer.
        until: the time until which an instance is asking, milliseconds; 0 if none is.
    """

    count: int = 0
    length: int = 0
    digest: str = ""
    answer: str = ""
    until: int = 0

    def has_counted(self, prompt: str) -> bool:
        """Say whether a prompt begins with the last one, which means that its turn was counted.

        A recall at the end of a turn is given the prompt followed by the answer.
        """
        return bool(self.count) and text_digest(prompt[: self.length]) == self.digest

    def with_turn(self, prompt: str) -> "Turn":
        """Return the turns with one added."""
        digest = text_digest(prompt)
        return msgspec.structs.replace(
            self, count=self.count + 1, length=len(prompt), digest=digest
        )


class QuestionFile:
    """The file with the counts. Each call opens it, so that any thread may call."""

    def __init__(self, path: Path, most: int, clock: Clock, shared: Spend | None = None) -> None:
        """Prepare; the file is not opened yet.

        Args:
            path: the file.
            most: the most questions of a day (UTC).
            clock: time.
            shared: counts the questions of all hosts; without it the file counts those of this
                host.
        """
        self._path, self._most, self._clock, self._shared = path, most, clock, shared

    def spend(self) -> bool:
        """Count a question if one is left today; say whether one was left.

        Raises:
            Unavailable: the count of all hosts cannot be reached.
        """
        if self._shared is not None:
            return self._shared(QUESTIONS, self._most)
        if not self._most:
            return False
        day = self._clock.now_ms() // _DAY
        with self._open() as db:
            db.execute("delete from spent where day < ?", (day,))
            return db.execute(_SPEND, {"day": day, "most": self._most}).rowcount == 1

    def count_turn(
        self, owner: Owner, session: str, prompt: str, every: int, seconds: float
    ) -> Turn:
        """Count the turn of a prompt and return the session's turns.

        Its `until` is set if the caller has to ask the model now.

        Args:
            owner: the owner of the session.
            session: its id.
            prompt: the prompt of the turn.
            every: after how many turns the model is asked again.
            seconds: how long asking may take; no other instance asks meanwhile.
        """
        now = self._clock.now_ms()
        with self._open() as db:
            known = _read_turn(db, owner, session)
            if known.has_counted(prompt):
                return msgspec.structs.replace(known, until=0)
            turn = known.with_turn(prompt)
            due = bool(every) and known.until <= now and (turn.count - 1) % every == 0
            until = now + round(1_000 * seconds) if due else known.until
            kept = msgspec.structs.replace(turn, until=until)
            row = {"owner": _owner_key(owner), "session": session, "at": now}
            db.execute(_KEEP_TURN, row | msgspec.structs.asdict(kept))
            db.execute(_DELETE_OLD, {"most": _MAX_SESSIONS - 1})
        return kept if due else msgspec.structs.replace(kept, until=0)

    def keep_answer(self, owner: Owner, session: str, answer: str) -> None:
        """Store an answer, unless the session was forgotten meanwhile; others may ask again.

        If the answer is empty, the previous one stays.
        """
        with self._open() as db:
            db.execute(
                "update turns set until = 0, answer = coalesce(nullif(?, ''), answer)"
                " where owner = ? and session = ?",
                (answer, _owner_key(owner), session),
            )

    def forget(self, owner: Owner) -> None:
        """Erase the answers for an owner; SQLite overwrites them (``secure_delete``)."""
        with self._open() as db:
            db.execute("delete from turns where owner = ?", (_owner_key(owner),))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file and a transaction, which commits at the end of the block."""
        private.directory(self._path.parent)
        private.file(self._path)
        with closing(
            sqlite3.connect(self._path, timeout=_LOCK_WAIT_SECONDS, isolation_level=None)
        ) as db:
            db.execute("pragma secure_delete = on")
            db.executescript(_TABLES)
            db.execute("begin immediate")
            with db:
                yield db


def _read_turn(db: sqlite3.Connection, owner: Owner, session: str) -> Turn:
    row = db.execute(
        "select count, length, digest, answer, until from turns where owner = ? and session = ?",
        (_owner_key(owner), session),
    ).fetchone()
    return Turn(*row) if row else Turn()


def _owner_key(owner: Owner) -> str:
    return msgspec.json.encode(owner).decode()
