"""What an erasure takes out of the file, however much it is and whoever reads meanwhile."""

import sqlite3
from pathlib import Path

import pytest
from memorybus.events import Scope, TurnCompleted
from memorybus_providers.base import ProviderConfig, RecallScope
from memorybus_providers.contract.samples import SampleStep, feed, recall_context
from memorybus_providers.holographic import schema
from memorybus_providers.holographic.erasure import SqliteErasure
from memorybus_providers.holographic.provider import HolographicProvider
from memorybus_providers.holographic.store import HolographicStore

ANN, BOB = Scope(agent="coder", user="ann"), Scope(agent="coder", user="bob")
OF_ANN = RecallScope(None, "ann", None)
TURNS = 400
"""More facts than one slice of an erasure takes: each turn brings two."""


def turns(scope: Scope, word: str, first: int = 1, count: int = TURNS) -> list[SampleStep]:
    """Return turns that say a word."""
    return [
        SampleStep(
            n, TurnCompleted(user=f"The {word} of day {n}.", assistant="Yes.", ordinal=n), scope
        )
        for n in range(first, first + count)
    ]


def opened(home: Path) -> HolographicProvider:
    """Return an open instance."""
    provider = HolographicProvider(ProviderConfig(name="holographic", home=home))
    provider.open()
    return provider


def store_of(provider: HolographicProvider) -> HolographicStore:
    """Return its open store."""
    assert isinstance(provider.facts, HolographicStore)
    return provider.facts


def rows(home: Path) -> dict[str, int]:
    """Count what the tables hold."""
    db = sqlite3.connect(home / "holographic.db")
    names = ("scopes", "sessions", "facts", "facts_fts_docsize", "sources", "former")
    there = {name for (name,) in db.execute("select name from sqlite_master")}
    found = {
        name: db.execute(f"select count(*) from {name}").fetchone()[0]
        for name in names
        if name in there
    }
    db.close()
    return found


def test_a_scope_of_many_slices_is_erased_whole(tmp_path):
    """More facts than a slice are erased in one call, and the rows of the other scope stay."""
    provider = opened(tmp_path)
    feed(provider, turns(BOB, "pear"))
    alone = rows(tmp_path)
    feed(provider, turns(ANN, "quince", first=TURNS + 1))

    residue = provider.forget(OF_ANN)

    assert residue.erased == 2 * TURNS
    assert rows(tmp_path) == alone
    assert len(provider.prefetch("the pear of day 7", recall_context(BOB))) > 0
    provider.shutdown()


def test_a_reader_that_stays_is_named(tmp_path, monkeypatch):
    """While somebody reads an older state the log beside the file stays: the residue says so."""
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0.01)
    provider = opened(tmp_path)
    feed(provider, turns(ANN, "quince", count=2))
    reader = sqlite3.connect(tmp_path / "holographic.db", isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from scopes").fetchone()

    residue = provider.forget(OF_ANN)
    assert ["holographic.db-wal" in said for said in residue.remains] == [True]

    reader.close()
    assert provider.forget(OF_ANN).remains == ()
    provider.shutdown()


def test_an_erasure_leaves_the_lineage_of_others_in_order(tmp_path):
    """A lane goes on numbering a session's utterances after somebody else was erased."""
    lane, provider = opened(tmp_path), opened(tmp_path)
    feed(lane, turns(BOB, "pear", count=2))
    feed(lane, turns(ANN, "quince", first=3, count=2))

    provider.forget(OF_ANN)
    feed(lane, turns(BOB, "plum", first=5, count=1))

    seqs = store_of(provider).db.execute("select seq from facts order by id").fetchall()
    assert [seq for (seq,) in seqs] == list(range(6))
    for one in (lane, provider):
        one.shutdown()


def test_an_erasure_that_was_cut_short_goes_on(tmp_path, monkeypatch):
    """What a killed call had erased stays gone, and the next one erases the rest."""
    provider = opened(tmp_path)
    feed(provider, turns(ANN, "quince"))
    cut, erase_slice = iter([True, False]), SqliteErasure._erase_slice

    def dying(self: SqliteErasure, row: int) -> int:
        if not next(cut, False):
            raise KeyboardInterrupt
        return erase_slice(self, row)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteErasure, "_erase_slice", dying)
        with pytest.raises(KeyboardInterrupt):
            provider.forget(OF_ANN)
    left = rows(tmp_path)["facts"]
    assert 0 < left < 2 * TURNS

    assert provider.forget(OF_ANN).erased == left
    assert rows(tmp_path)["scopes"] == 0
    provider.shutdown()
