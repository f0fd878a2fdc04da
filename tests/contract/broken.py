"""Providers that each break one rule of the contract: the page's sound example, spoilt."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from memorybus.errors import LeaseLost, Unavailable
from memorybus.events import MemoryWritten, TurnCompleted
from memorybus_providers import ledger
from memorybus_providers.base import (
    Capabilities,
    MemoryOwner,
    MemoryProvider,
    Progress,
    Recollection,
    Residue,
    StoredMemory,
)
from memorybus_providers.contract import ContractBroken
from provider_example import example_module

Sound: Any = example_module().NotesProvider
TURNS = frozenset({TurnCompleted})

Broken = type[MemoryProvider]
CASES: list[tuple[str, Broken, type[Exception]]] = []
"""A rule (a test method's name without ``test_``), who breaks it, and what the test raises."""


def breaks(rule: str, raises: type[Exception] = ContractBroken) -> Callable[[Broken], Broken]:
    """Add a class to the cases of a rule."""

    def add(broken: Broken) -> Broken:
        CASES.append((rule, broken, raises))
        return broken

    return add


def spoilt(rule: str, base: Any = Sound, name: str = "", **attributes: Any) -> None:
    """Add a provider with some attributes replaced."""
    breaks(rule)(type(name or f"Spoilt_{'_'.join(attributes)}_{len(CASES)}", (base,), attributes))


def returns(value: Any) -> Callable[..., Any]:
    """Return a method that answers `value`."""
    return lambda *_, **__: value


# -- declarations -------------------------------------------------------------------------------

DECLARES = "declares_kind_delivery_and_placement"
spoilt(DECLARES, kind="")
spoilt(DECLARES, kind=None)
spoilt(DECLARES, delivery="exactly_once")
spoilt(DECLARES, placement="moon")

DELIVERY = "delivery_agrees_with_the_base_class"
spoilt(DELIVERY, delivery="keyed")
spoilt(DELIVERY, MemoryProvider, "TransactionalInName", kind="name", delivery="transactional")

AGREES = "capabilities_agree_with_the_overridden_hooks"
spoilt(AGREES, capabilities={"recall": True})
spoilt(AGREES, capabilities=Capabilities(handles=frozenset({TurnCompleted, MemoryWritten})))
spoilt(AGREES, capabilities=Capabilities(handles=frozenset()))
spoilt(AGREES, capabilities=Capabilities(handles=frozenset({TurnCompleted, int})))
spoilt(AGREES, capabilities=Capabilities(recall=False, handles=TURNS))
spoilt(AGREES, capabilities=Capabilities(tools=True, handles=TURNS))
spoilt(AGREES, handle_tool_call=returns({}))
spoilt(AGREES, get_tool_schemas=returns([{"name": "find"}]))
spoilt(AGREES, retract=lambda self, event_ids, ctx: None)
spoilt(AGREES, forget=lambda self, scope: Residue())
spoilt(AGREES, export=lambda self, scope: iter(()))

HOOKS = "hooks_take_what_they_are_called_with"
spoilt(HOOKS, sync_turn=lambda self, event: None)
spoilt(HOOKS, sync_turn=lambda self, user, assistant, session_id: None)
spoilt(HOOKS, prefetch=lambda self, query, *, ctx: ())
spoilt(HOOKS, forget=lambda self: Residue())
spoilt(HOOKS, sync_turns=lambda self: {})

TOOLS = "tool_schemas_are_valid_before_open"
FIND = {"name": "find", "description": "Find a note.", "parameters": {"type": "object"}}
for schema in (
    {**FIND, "name": "find a note"},
    {**FIND, "description": ""},
    {**FIND, "parameters": None},
    {**FIND, "parameters": {"type": "string"}},
    {**FIND, "parameters": {"type": "object", "properties": {}, "required": ["query"]}},
    {**FIND, "extra": object()},
    {"type": "function", "function": {"name": "find"}},
):
    spoilt(TOOLS, get_tool_schemas=returns([schema]))
spoilt(TOOLS, get_tool_schemas=returns([FIND, FIND]))

spoilt(
    "reading_tools_are_tools",
    capabilities=Capabilities(tools=True, reading_tools=frozenset({"fnid"}), handles=TURNS),
    get_tool_schemas=returns([FIND]),
)

OPTIONS = "config_schema_is_well_formed"
LIMIT = {"key": "limit", "description": "Most notes of a recall."}
for field in (
    {"description": "x"},
    {"key": "limit"},
    {**LIMIT, "default": object()},
    {**LIMIT, "choices": "abc"},
    {**LIMIT, "choices": [1, 2], "default": 3},
    {**LIMIT, "secret": "yes"},
    {**LIMIT, "type": "float"},
    {**LIMIT, "hint": 3},
):
    spoilt(OPTIONS, get_config_schema=returns([field]))
spoilt(OPTIONS, get_config_schema=returns([LIMIT, LIMIT]))


@breaks("shutdown_may_come_twice_or_without_open")
class ShutdownOnce(Sound):
    def shutdown(self) -> None:
        self.db.close()
        self.db = None


BACKUP = "backup_paths_exist_after_a_write"
spoilt(BACKUP, backup_paths=returns(()))
spoilt(BACKUP, name="BackupElsewhere", backup_paths=lambda self: [self.config.home / "other.db"])

# -- delivery -----------------------------------------------------------------------------------


class NoLedger:
    """A transaction whose ledger is empty for ever."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def applied(self, event_ids: Sequence[str]) -> frozenset[str]:
        return frozenset()

    def record(self, event_ids: Sequence[str], progress: Progress) -> None:
        self._inner.record([], progress)


AGAIN = "the_same_events_again_change_nothing"
LEDGER = "the_ledger_knows_what_was_applied"


@breaks(AGAIN)
@breaks(LEDGER)
@breaks("an_event_at_a_new_position_is_known")
class Forgetful(Sound):
    @contextmanager
    def transaction(self, fence: Any) -> Iterator[Any]:
        with super().transaction(fence) as inner:
            yield NoLedger(inner)


class NotesInFile(MemoryProvider):
    """Appends what is said to a file, each time that it is said."""

    kind = "notes"
    capabilities = Capabilities(handles=TURNS)

    def path(self, user: str) -> Path:
        return self.config.home / "notes.txt"

    def sync_turn(self, event: Any, ctx: Any) -> None:
        with self.path(ctx.scope.user).open("a") as file:
            file.write(f"{ctx.event_id} {json.dumps(event.user)}\n")

    def prefetch(self, query: str, ctx: Any) -> Sequence[Recollection]:
        path = self.path(ctx.scope.user)
        lines = path.read_text().splitlines() if path.exists() else []
        return [Recollection(json.loads(line.split(" ", 1)[1])) for line in lines]


spoilt(AGAIN, NotesInFile, "KeyedInName", delivery="keyed")


class SoundLookup(NotesInFile):
    """Breaks nothing: each line carries the event's id."""

    delivery = "lookup"

    def knows(self, event_id: str, ctx: Any) -> bool:
        return event_id in self.path(ctx.scope.user).read_text()


LOOKUP = "a_lookup_knows_what_the_backend_holds"
spoilt(LOOKUP, NotesInFile, "LookupInName", delivery="lookup")
spoilt(LOOKUP, SoundLookup, "KnowsAll", knows=returns(True))
spoilt(LOOKUP, SoundLookup, "KnowsNothing", knows=returns(False))


@breaks(LOOKUP)
class KnowsWhileItLives(SoundLookup):
    def open(self) -> None:
        self.sent: set[str] = set()

    def sync_turn(self, event: Any, ctx: Any) -> None:
        super().sync_turn(event, ctx)
        self.sent.add(ctx.event_id)

    def knows(self, event_id: str, ctx: Any) -> bool:
        return event_id in self.sent


class Volatile(Sound):
    """Begins with an empty table."""

    lost = "notes"

    def open(self) -> None:
        super().open()
        self.db.execute(f"delete from {self.lost}")


spoilt(LEDGER, Volatile, "LedgerInMemory", lost="mb_applied")

PROGRESS = "progress_is_what_was_recorded_last"
spoilt(PROGRESS, progress=returns(None))
spoilt(PROGRESS, progress=returns(Progress(1, "0-0", 0)))
spoilt(PROGRESS, name="OneLane", progress=lambda self, lane: Sound.progress(self, "p00"))

ROLLED_BACK = "a_rolled_back_transaction_leaves_nothing"
spoilt(
    ROLLED_BACK,
    name="EffectsOutside",
    path=NotesInFile.path,
    sync_turn=NotesInFile.sync_turn,
    prefetch=NotesInFile.prefetch,
)


@breaks(ROLLED_BACK)
class CommitsAnyway(Sound):
    @contextmanager
    def transaction(self, fence: Any) -> Iterator[Any]:
        yield ledger.SqliteTransaction(self.db, fence.lane)


@breaks("a_stale_owner_is_refused")
class AnyOwner(Sound):
    @contextmanager
    def transaction(self, fence: Any) -> Iterator[Any]:
        self.db.execute("begin immediate")
        try:
            yield ledger.SqliteTransaction(self.db, fence.lane)
            self.db.execute("commit")
        except BaseException:
            self.db.execute("rollback")
            raise


@breaks("a_stale_owner_is_refused")
class LateRefusal(Sound):
    """Finds out that it is stale when its effects are already there."""

    @contextmanager
    def transaction(self, fence: Any) -> Iterator[Any]:
        known = self.progress(fence.lane)
        yield ledger.SqliteTransaction(self.db, fence.lane)
        if known and known.epoch > fence.epoch:
            raise LeaseLost("too late")


# -- recall -------------------------------------------------------------------------------------

spoilt("recall_finds_what_was_remembered", prefetch=returns(()))
spoilt("recall_survives_a_restart", Volatile, "Volatile")
spoilt(
    "recall_as_of_a_time_knows_nothing_later", capabilities=Capabilities(as_of=True, handles=TURNS)
)


class Scoped(Sound):
    """Recalls for another scope than the one that asks."""

    def prefetch(self, query: str, ctx: Any) -> Sequence[Recollection]:
        scope = self.asked(ctx.scope.agent, ctx.scope.user, ctx.scope.workspace)
        return super().prefetch(query, type(ctx)(scope=type(ctx.scope)(*scope)))


SCOPES, WORKSPACES = "recall_keeps_scopes_apart", "recall_keeps_workspaces_apart"
for rule, name, asked in (
    (SCOPES, "LeaksUsers", lambda self, agent, user, workspace: (agent, None, workspace)),
    (SCOPES, "LeaksEverything", returns((None, None, None))),
    (SCOPES, "NobodyIsEveryone", lambda self, *names: [part or "" for part in names]),
    (WORKSPACES, "LeaksWorkspaces", lambda self, agent, user, workspace: (agent, user, None)),
    (WORKSPACES, "NoneIsEveryWorkspace", lambda self, *names: (*names[:2], names[2] or None)),
):
    spoilt(rule, Scoped, name, asked=asked)


class PerUserFile(Sound):
    """Keeps a file per user, named after the user."""

    sync_turn, prefetch = NotesInFile.sync_turn, NotesInFile.prefetch


HOSTILE_IDS = "recall_keeps_hostile_ids_apart_and_at_home"


@breaks(HOSTILE_IDS)
class UserOutside(PerUserFile):
    def path(self, user: str) -> Path:
        return self.config.home / ("../up.txt" if user == ".." else f"{hash(user)}.txt")


@breaks(HOSTILE_IDS)
class UserWithoutCase(PerUserFile):
    def path(self, user: str) -> Path:
        return self.config.home / f"{hash(user.lower())}.txt"


HOSTILE = "hostile_texts_break_nothing"


@breaks(HOSTILE, raises=sqlite3.Error)
class RawQuery(Sound):
    def prefetch(self, query: str, ctx: Any) -> Sequence[Recollection]:
        self.db.execute(f"select '{query}'")
        return super().prefetch(query, ctx)


@breaks(HOSTILE, raises=Unavailable)
class RefusesTexts(Sound):
    def sync_turn(self, event: Any, ctx: Any) -> None:
        if len(event.user) > 50_000:
            raise Unavailable("too long")
        super().sync_turn(event, ctx)


spoilt(HOSTILE, prefetch=returns(["a plain string"]))
spoilt(HOSTILE, prefetch=returns([Recollection(text=b"bytes")]))
spoilt(HOSTILE, prefetch=returns([Recollection(text="\ud800")]))


@breaks("prefetch_keeps_its_deadline")
class Slow(Sound):
    def prefetch(self, query: str, ctx: Any) -> Sequence[Recollection]:
        until = time.monotonic() + 2 * ctx.deadline
        while time.monotonic() < until:
            pass
        return super().prefetch(query, ctx)


spoilt(
    "an_unknown_tool_is_an_error",
    name="AnyTool",
    capabilities=Capabilities(tools=True, handles=TURNS),
    get_tool_schemas=returns([FIND]),
    handle_tool_call=returns({"ok": True}),
)

# -- digests ------------------------------------------------------------------------------------


class Digesting(Sound):
    """The sound one with a sound digest: each owner's notes, by session."""

    query = "select user, group_concat(text, '|') from notes group by user"

    def digest(self, after: str = "") -> Any:
        return iter([pair for pair in self.pairs() if pair[0] > after])

    def pairs(self) -> list[tuple[str, str]]:
        rows = self.db.execute(self.query)
        return sorted((key, self.summed_up(text)) for key, text in rows.fetchall())

    def summed_up(self, text: str) -> str:
        return text


SAME_DIGEST = "the_same_events_give_the_same_digest"
spoilt(
    SAME_DIGEST,
    Digesting,
    "DigestOfPlace",
    summed_up=lambda self, text: f"{text}{self.config.home}",
)
BATCHES = (
    "select user, group_concat(text) || (select count(*) from mb_applied) from notes group by user"
)
spoilt(SAME_DIGEST, Digesting, "DigestOfBatches", query=BATCHES)
spoilt("another_event_gives_another_digest", Digesting, "DigestOfOwners", summed_up=returns(""))
spoilt(
    "the_order_of_unrelated_keys_does_not_matter",
    Digesting,
    "DigestOfRows",
    query="select user, cast(max(rowid) as text) from notes group by user",
)

IN_ORDER = "a_digest_is_in_order_and_can_be_had_in_parts"
PAIRS = Digesting.pairs
spoilt(IN_ORDER, Digesting, "DigestBackwards", pairs=lambda self: PAIRS(self)[::-1])
spoilt(IN_ORDER, Digesting, "DigestTwice", pairs=lambda self: sorted(PAIRS(self) * 2))
spoilt(IN_ORDER, Digesting, "DigestWhole", digest=lambda self, after="": iter(self.pairs()))

# -- what was taken back ------------------------------------------------------------------------


class Retracting(Sound):
    """The sound one, which forgets the turns that were taken back."""

    capabilities = Capabilities(recall=True, retracts=True, handles=TURNS)
    condition = "agent = ? and user = ? and root = ? and event = ?"

    def open(self) -> None:
        super().open()
        columns = "note integer primary key, agent, user, root, event"
        self.db.execute(f"create table if not exists said({columns})")

    def sync_turn(self, event: Any, ctx: Any) -> None:
        super().sync_turn(event, ctx)
        note = self.db.execute("select last_insert_rowid()").fetchone()[0]
        self.db.execute(
            "replace into said values (?, ?, ?, ?, ?)", (note, *self._of(ctx, ctx.event_id))
        )

    def retract(self, event_ids: Sequence[str], ctx: Any) -> None:
        for event_id in event_ids:
            self._forget(self._of(ctx, event_id))

    def _of(self, ctx: Any, event_id: str) -> tuple[str, ...]:
        return ctx.scope.agent, ctx.scope.user, ctx.session.root, event_id

    def _forget(self, names: tuple[str, ...]) -> None:
        found = self.db.execute(f"select note from said where {self.condition}", names)
        for note in found.fetchall():
            self.db.execute("delete from notes where rowid = ?", note)
            self.db.execute("delete from said where note = ?", note)


RETRACTED = "what_was_retracted_is_not_recalled"
spoilt(RETRACTED, Retracting, "KeepsAll", retract=lambda self, event_ids, ctx: None)


@breaks(RETRACTED)
class ForgetsAll(Retracting):
    def retract(self, event_ids: Sequence[str], ctx: Any) -> None:
        self.db.execute("delete from notes")


@breaks("a_retracted_turn_leaves_nothing_in_the_state")
class ForgetsEveryOther(Retracting):
    """Believes that it has done what it is asked: only when the turn came in the same batch."""

    def retract(self, event_ids: Sequence[str], ctx: Any) -> None:
        if self.db.total_changes - self.before < 3:
            super().retract(event_ids, ctx)

    def transaction(self, fence: Any) -> Any:
        self.before = self.db.total_changes
        return super().transaction(fence)


ITS_OWN = "only_what_is_the_rewinds_own_is_retracted"
ANYBODYS = "? is not null and ? is not null and root = ? and event = ?"
ANY_LINEAGE = "agent = ? and user = ? and ? is not null and event = ?"
spoilt(ITS_OWN, Retracting, "AnybodysTurn", condition=ANYBODYS)
spoilt(ITS_OWN, Retracting, "AnyLineage", condition=ANY_LINEAGE)

# -- erasure and export -------------------------------------------------------------------------


class Forgetting(Sound):
    """The sound one, which erases what is somebody's, and gives it out."""

    capabilities = Capabilities(recall=True, forgets=True, exports=True, handles=TURNS)
    condition = "agent = coalesce(?, agent) and user = coalesce(?, user)"
    secure = "on"

    def open(self) -> None:
        super().open()
        self.db.execute(f"pragma secure_delete = {self.secure}")

    def forget(self, scope: Any) -> Residue:
        gone = self.db.execute(
            f"delete from notes where {self.condition}", (scope.agent, scope.user)
        )
        self.db.execute("pragma wal_checkpoint(truncate)")
        return Residue(gone.rowcount)

    def export(self, scope: Any) -> Iterator[StoredMemory]:
        query = f"select text, agent, user, workspace from notes where {self.condition}"
        for row in self.db.execute(query, (scope.agent, scope.user)):
            yield StoredMemory(*row)

    def owners(self, after: Any = None) -> Iterator[MemoryOwner]:
        query = "select distinct agent, user, workspace from notes order by agent, user, workspace"
        for row in self.db.execute(query):
            if after is None or row > after:
                yield MemoryOwner(*row)


FORGOTTEN, NO_BYTE = "what_is_forgotten_is_not_recalled", "what_is_forgotten_leaves_no_byte"
spoilt(FORGOTTEN, Forgetting, "ForgetsNobody", forget=lambda self, scope: Residue(1))
spoilt(FORGOTTEN, Forgetting, "ForgetsEverybody", condition="? is null or ? is null or true")
OWN_AGENT = "agent = coalesce(?, 'contract-agent') and user = coalesce(?, user)"
spoilt(FORGOTTEN, Forgetting, "ForgetsTheOwnAgentOnly", condition=OWN_AGENT)
spoilt(NO_BYTE, Forgetting, "LeavesFreePages", secure="off")


@breaks(NO_BYTE)
class LeavesItInItsLog(Forgetting):
    def forget(self, scope: Any) -> Residue:
        names = (scope.agent, scope.user)
        return Residue(self.db.execute(f"delete from notes where {self.condition}", names).rowcount)


@breaks("a_forgotten_scope_is_as_if_it_had_never_been")
class RemembersTheName(Forgetting):
    """Has nothing of the person but the person."""

    def forget(self, scope: Any) -> Residue:
        super().forget(scope)
        note = ("", scope.user, "", "", 0, "a quince of one who is gone")
        self.db.execute("insert into notes values (?, ?, ?, ?, ?, ?)", note)
        return Residue()


@breaks("a_lane_goes_on_after_an_erasure")
class BringsBack(Forgetting):
    """Writes again what it has in memory."""

    said: tuple[tuple[Any, Any], ...] = ()

    def sync_turn(self, event: Any, ctx: Any) -> None:
        for one in self.said:
            super().sync_turn(*one)
        self.said += ((event, ctx),)
        super().sync_turn(event, ctx)


TWICE = "an_erasure_may_come_twice"


@breaks(TWICE, StopIteration)
class LooksAtTheFirst(Forgetting):
    def forget(self, scope: Any) -> Residue:
        next(self.export(scope))
        return super().forget(scope)


@breaks(TWICE)
class SaysNothing(Forgetting):
    def forget(self, scope: Any) -> Any:
        super().forget(scope)


EXPORTED = "an_export_yields_what_is_kept_of_a_scope"
spoilt(EXPORTED, Forgetting, "ExportsNothing", export=lambda self, scope: iter(()))
spoilt(
    "an_export_has_nothing_of_what_was_forgotten",
    Forgetting,
    "ExportsFromACopy",
    export=lambda self, scope: iter((StoredMemory("I saw a wolpertinger."),)),
)


@breaks(EXPORTED)
class ExportsEverybody(Forgetting):
    def export(self, scope: Any) -> Iterator[StoredMemory]:
        return super().export(type(scope)(None, None, None))


OWNERS = "owners_are_those_of_whom_something_is_kept"


@breaks(OWNERS)
class NamesOneOnly(Forgetting):
    def owners(self, after: Any = None) -> Iterator[MemoryOwner]:
        return islice(super().owners(after), 1)


@breaks(OWNERS)
class NamesThemFromTheBeginning(Forgetting):
    def owners(self, after: Any = None) -> Iterator[MemoryOwner]:
        return super().owners()


# -- bulk calls ---------------------------------------------------------------------------------


class InBulk(MemoryProvider):
    """A sound ``keyed`` provider with a bulk call: a file of lines, and of the ids behind them."""

    kind = "bulk"
    delivery = "keyed"
    capabilities = Capabilities(recall=True, handles=TURNS)

    @property
    def path(self) -> Path:
        return self.config.home / "turns.jsonl"

    def lines(self) -> list[list[str]]:
        texts = self.path.read_text().splitlines() if self.path.exists() else []
        return [json.loads(text) for text in texts]

    def sync_turn(self, event: Any, ctx: Any) -> None:
        if ctx.event_id not in {line[0] for line in self.lines()}:
            self.keep(event, ctx)

    def keep(self, event: Any, ctx: Any) -> None:
        with self.path.open("a") as file:
            line = (ctx.event_id, ctx.scope.agent, ctx.scope.user, ctx.scope.workspace, event.user)
            file.write(json.dumps(line) + "\n")

    def sync_turns(self, turns: Any) -> Any:
        for turn in turns:
            self.sync_turn(*turn)
        return {}

    def prefetch(self, query: str, ctx: Any) -> Sequence[Recollection]:
        asked = (ctx.scope.agent, ctx.scope.user, ctx.scope.workspace)
        return [
            Recollection(text)
            for _, *owner, text in self.lines()
            if all(part in (None, held) for part, held in zip(asked, owner, strict=True))
        ]


IN_BULK = "turns_in_bulk_are_as_one_by_one"


@breaks(IN_BULK)
class KeepsTheLast(InBulk):
    def sync_turns(self, turns: Any) -> Any:
        return super().sync_turns(turns[-1:])


@breaks(IN_BULK)
class ForgetsTheOwners(InBulk):
    def sync_turns(self, turns: Any) -> Any:
        return super().sync_turns([(turn.event, turns[0].ctx) for turn in turns])


@breaks(IN_BULK)
class ReturnsNothing(InBulk):
    def sync_turns(self, turns: Any) -> Any:
        super().sync_turns(turns)


@breaks("turns_that_come_again_in_bulk_change_nothing")
class DoublesInBulk(InBulk):
    def sync_turns(self, turns: Any) -> Any:
        for turn in turns:
            self.keep(*turn)
        return {}
