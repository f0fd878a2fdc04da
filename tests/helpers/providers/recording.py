"""Providers for tests: they record what they are told, and misbehave when a text says so.

Named as ``helpers.providers.recording:Keyed`` and the like. A turn whose text begins with a word of
`MISDEEDS` makes its hook fail; ``!name=/path`` does so only while that file exists.
``!takes=0.02`` makes its hook take so many seconds.
"""

import hashlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from memorybus.errors import Permanent, ProviderError, Transient, Unavailable
from memorybus.events import MemoryWritten, TurnCompleted
from memorybus_providers import ledger
from memorybus_providers.base import (
    Capabilities,
    Fence,
    HookContext,
    MemoryProvider,
    Progress,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
    TransactionalProvider,
    TurnCall,
)
from memorybus_providers.digests import paired

_SCHEMA = """
create table if not exists effects(
    id integer primary key, event_id text, key_ text, agent text, user text, session text,
    n integer, epoch integer, text text);
"""


CALLS = "calls.jsonl"
CLOSED = "(closed)"
SILENT = "silent"


class Effect(msgspec.Struct, frozen=True):
    """One recorded effect."""

    event_id: str
    session: str
    n: int
    text: str


def _hang(path: str) -> None:
    for _ in iter(lambda: not path or Path(path).exists(), False):
        threading.Event().wait(0.01)


def _take(seconds: str) -> None:
    threading.Event().wait(float(seconds))


def _hang_then_refuse(path: str) -> None:
    _hang(path)
    raise Permanent("refused after a while")


def _fail(error: type[Exception], path: str) -> None:
    if not path or Path(path).exists():
        raise error(f"told to raise {error.__name__}")


def _meet(path: str) -> None:
    """Wait until another thread of this process, or of any, comes to meet us at the path."""
    with Path(path).open("a") as file:
        file.write("x")
    for _ in iter(lambda: len(Path(path).read_text()) >= 2, True):
        threading.Event().wait(0.01)


def _exit(path: str) -> None:
    if not path or Path(path).exists():
        os._exit(9)


MISDEEDS = {
    "!meet": _meet,
    "!exit": _exit,
    "!permanent": lambda path: _fail(Permanent, path),
    "!value": lambda path: _fail(ValueError, path),
    "!transient": lambda path: _fail(Transient, path),
    "!unavailable": lambda path: _fail(Unavailable, path),
    "!hang": _hang,
    "!takes": _take,
    "!refused_later": _hang_then_refuse,
}


def misbehave(text: str) -> None:
    """Do what the first word of a text says, if it is a misdeed."""
    name, _, path = text.partition(" ")[0].partition("=")
    if name in MISDEEDS:
        MISDEEDS[name](path)


LOST = {"!stored": Transient, "!stored_down": Unavailable}
"""Misdeeds after the effect, once: the file that they name goes."""


def lose_answer(text: str) -> None:
    """Raise what a text says if its effect is there, but its answer shall be lost."""
    name, _, path = text.partition(" ")[0].partition("=")
    if name in LOST and Path(path).exists():
        Path(path).unlink()
        raise LOST[name]("the answer was lost after the backend had stored the event")


class Recording(MemoryProvider):
    """Records every effect in a SQLite file of its home, each at once (``blind``)."""

    kind = "recording"
    capabilities = Capabilities(handles=frozenset({TurnCompleted, MemoryWritten}))
    fresh_by_home = True
    tunable = frozenset({"collection", "day", "model", "size"})
    known = "false"
    """The SQL condition under which an effect is there already and not added again."""

    def open(self) -> None:
        self.config.home.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(
            self.config.home / "effects.db",
            isolation_level=None,
            check_same_thread=False,
            timeout=float(self.config.options.get("busy", 5)),
        )
        self.db.execute("pragma journal_mode = wal")
        self.db.execute("pragma synchronous = off")
        self.db.executescript(_SCHEMA)

    def shutdown(self) -> None:
        if hasattr(self, "db"):
            self.db.close()

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        self._remember(event.user, ctx)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        self._remember(event.content, ctx)

    def _remember(self, text: str, ctx: HookContext) -> None:
        self._note(text)
        misbehave(text)
        self._keep(text, ctx)
        self.config.crash("recording.after_effect")
        lose_answer(text)

    def _note(self, what: str) -> None:
        line = msgspec.json.encode((os.getpid(), what)) + b"\n"
        with (self.config.home / CALLS).open("ab") as file:  # outside of any transaction
            file.write(line)

    def _keep(self, text: str, ctx: HookContext) -> None:
        """Add an effect unless it is `known`, in one step: several threads may call."""
        self.db.execute(
            "insert into effects(event_id, key_, agent, user, session, n, epoch, text) "
            f"select :id, :lane, :agent, :user, :session, :n, 0, :text where not {self.known}",
            {
                "id": ctx.event_id,
                "lane": f"lane {ctx.position.partition}",  # older releases say another
                "agent": ctx.scope.agent,
                "user": ctx.scope.user,
                "session": ctx.session.id,
                "n": ctx.position.n,
                "text": text,
            },
        )

    def digest(self, after: str = "") -> Iterator[tuple[str, str]] | None:
        # Order is promised within a key, hence within a lane; a session's memory has another.
        ask = "select session, event_id, text from effects order by key_, id"
        rows = self.db.execute(ask).fetchall()
        sessions = {row[0] for row in rows}
        return paired(((s, [r[1:] for r in rows if r[0] == s]) for s in sessions), after)

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return the texts of the scope that share a word with the query, newest first.

        The option ``speaker`` says who said all of it.
        """
        misbehave(query)
        speaker = str(self.config.options.get("speaker", ""))
        words = {word.lower() for word in query.split()}
        rows = self.db.execute(
            "select text, session from effects where (agent = ? or ? is null) "
            "and (user = ? or ? is null) order by id desc",
            (ctx.scope.agent, ctx.scope.agent, ctx.scope.user, ctx.scope.user),
        )
        return [
            Recollection(text, session=session, speaker=speaker)
            for text, session in rows
            if words & set(text.lower().split())
        ]


Blind = Recording


class Keyed(Recording):
    """The backend takes our event id as its key."""

    delivery = "keyed"
    known = "exists (select 1 from effects where event_id = :id)"


class Lookup(Recording):
    """The backend can be asked for an event id; it takes the same one twice."""

    delivery = "lookup"

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Ask; ``knows`` of the options names a misdeed."""
        self._note("knows")
        misbehave(str(self.config.options.get("knows", "")))
        return _holds(self.db, event_id)


class WithoutDigest(Lookup):
    """Two states of it cannot be compared."""

    digest = MemoryProvider.digest


class KeyedShared(Keyed):
    """Its state lies where its option says, not in its home."""

    fresh_by_home = False
    fresh_options = ("collection",)

    def __init__(self, config: ProviderConfig) -> None:
        where = config.home.with_name(f"collection-{config.options.get('collection', 'main')}")
        super().__init__(msgspec.structs.replace(config, home=where))


_SIDE_BY_SIDE = Capabilities(concurrent=True, handles=Recording.capabilities.handles)


class KeyedSide(Keyed):
    """As `Keyed`, called for several keys at once."""

    capabilities = _SIDE_BY_SIDE


class TellsClosing(KeyedSide):
    """As `KeyedSide`; notes `CLOSED` as a call when it is closed."""

    def shutdown(self) -> None:
        if hasattr(self, "db"):
            self._note(CLOSED)
        super().shutdown()


class DeafSide(KeyedSide):
    """As `KeyedSide`, and takes no events."""

    capabilities = Capabilities(concurrent=True)


class LookupSide(Lookup):
    """As `Lookup`, called for several keys at once."""

    capabilities = _SIDE_BY_SIDE


class InBulk(Recording):
    """Takes turns in bulk: it remembers them up to the first that it refuses, and names that one.

    A text of `LOST` loses the answer to the whole call, after all of it is stored; the option
    ``whole`` names a misdeed of each call for several.
    """

    bulk_turns = 20

    def sync_turns(self, turns: Sequence[TurnCall]) -> Mapping[str, ProviderError]:
        self._note(f"bulk {len(turns)}")
        misbehave(str(self.config.options.get("whole", "")))
        failed: dict[str, ProviderError] = {}
        broken: set[str] = set()
        for event, ctx in turns:
            if ctx.session.root not in broken:
                try:
                    misbehave(event.user)
                    self._keep(event.user, ctx)
                except ProviderError as error:
                    failed[ctx.event_id] = error
                    broken.add(ctx.session.root)
        self.config.crash("recording.after_bulk")
        for event, _ in turns:
            lose_answer(event.user)
        return failed


class KeyedBulk(InBulk, Keyed):
    """As `Keyed`, in bulk."""


class LookupBulk(InBulk, Lookup):
    """As `Lookup`, in bulk."""


class BlindBulk(InBulk, Recording):
    """As `Recording`, which is never called in bulk."""


class KeyedBulkSide(KeyedBulk):
    """As `KeyedBulk`, called for several keys at once."""

    capabilities = _SIDE_BY_SIDE


class LookupBulkSide(LookupBulk):
    """As `LookupBulk`, called for several keys at once."""

    capabilities = _SIDE_BY_SIDE


class LateLookup(Lookup):
    """Its first answer is long on its way: it comes when the path in ``late`` is gone."""

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        known, late = super().knows(event_id, ctx), str(self.config.options["late"])
        if not Path(f"{late}.asked").exists():
            Path(f"{late}.asked").touch()
            _hang(late)
        return known


class LateLookupSide(LateLookup):
    """As `LateLookup`, called for several keys at once."""

    capabilities = _SIDE_BY_SIDE


class Transactional(Recording, TransactionalProvider):
    """Effects, ledger and checkpoint in one SQLite transaction.

    Options name misdeeds for the places in which no event is at hand: ``begin``, ``commit``.
    """

    delivery = "transactional"

    def open(self) -> None:
        """Open the file with its ledger."""
        super().open()
        ledger.migrate(self.db)
        self._ledger = ledger.Ledger(self.db)

    def progress(self, lane: str) -> Progress | None:
        return ledger.progress(self.db, lane)

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[Any]:
        misbehave(str(self.config.options.get("begin", "")))
        with self._ledger.transaction(fence) as transaction:
            yield transaction
            self._commit_misdeed()

    def _commit_misdeed(self) -> None:
        bad = self.config.options.get("refuse_at_commit")
        if bad and self.db.execute("select 1 from effects where text = ?", (bad,)).fetchone():
            raise Permanent(f"the store refuses {bad!r}")


class SlowToBegin(Transactional):
    """Hangs when it is asked a second time how far a lane is, while the file ``hangs`` exists."""

    def open(self) -> None:
        super().open()
        self._asked: set[str] = set()

    def progress(self, lane: str) -> Progress | None:
        """Return a lane's progress, at once or much later."""
        if lane in self._asked:
            _hang(str(self.config.options["hangs"]))
        self._asked.add(lane)
        return super().progress(lane)


class Sick(Recording):
    """Does the misdeed of its options at every event."""

    def _note(self, what: str) -> None:
        super()._note(what)
        misbehave(str(self.config.options["misdeed"]))


class Garbage(Recording):
    """Answers recalls with what is no list of recollections."""

    def prefetch(self, query: str, ctx: RecallContext) -> Any:
        return 42


class Ill(Keyed):
    """Says that its backend is ill while the file that its option ``ill`` names is there."""

    def health(self, deadline: float) -> str:
        return "the disk is nearly full" if Path(self.config.options["ill"]).exists() else ""


class RaisingRecall(Recording):
    """Raises when asked."""

    def prefetch(self, query: str, ctx: RecallContext) -> Any:
        raise RuntimeError("no recall today")


class Prompting(Keyed):
    """Adds what it holds of one agent and person to system prompts, a line each."""

    def system_prompt_block(self, scope: RecallScope) -> str:
        """Return it; while the file `SILENT` of its home is there, it fails."""
        if (self.config.home / SILENT).exists():
            raise RuntimeError("no prompt today")
        ask = "select text from effects where agent = ? and user = ? order by id"
        return "\n".join(row[0] for row in self.db.execute(ask, (scope.agent, scope.user)))


def _holds(db: sqlite3.Connection, event_id: str) -> bool:
    found = db.execute("select 1 from effects where event_id = ?", (event_id,))
    return found.fetchone() is not None


def _rows(home: Path, sql: str) -> list[tuple[Any, ...]]:
    path = home / "effects.db"
    if not path.exists():
        return []
    db = sqlite3.connect(path, timeout=5)
    try:
        return db.execute(sql).fetchall()
    except sqlite3.OperationalError:
        return []  # not yet made
    finally:
        db.close()


def effects(home: Path) -> list[Effect]:
    """Return what a provider's home holds, in the order of application."""
    rows = _rows(home, "select event_id, session, n, text from effects order by id")
    return [Effect(*row) for row in rows]


def texts(home: Path) -> list[str]:
    """Return the texts of the effects, in the order of application."""
    return [effect.text for effect in effects(home)]


def calls(home: Path, pid: int | None = None) -> list[str]:
    """Return what the hooks were called with, by one process or by all."""
    path = home / CALLS
    lines = path.read_bytes().splitlines() if path.exists() else []
    rows = [msgspec.json.decode(line, type=tuple[int, str]) for line in lines]
    return [what for caller, what in rows if pid in {None, caller}]


def state_digest(home: Path) -> str:
    """Return what stands for the state, by session and lane: no other order is promised (G3)."""
    parts: dict[str, list[str]] = {}
    for session, lane, event_id, text in _rows(
        home, "select session, key_, event_id, text from effects order by id"
    ):
        parts.setdefault(f"{lane} {session}", []).append(f"{event_id}:{text}")
    return hashlib.sha256(msgspec.json.encode(sorted(parts.items()))).hexdigest()
