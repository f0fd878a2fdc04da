"""The files and the checkpoint change together; people's edits stay."""

import errno
import logging
import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builtin_feeding import (
    LANE,
    ME,
    add,
    feed,
    memory_file,
    provider_at,
    remove,
    replace,
    user_file,
)
from helpers.processes.synced import note_syncs
from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError, Permanent, Transient, Unavailable
from memorybus.events import Position, Scope, SessionRef
from memorybus_providers.base import HookContext, RecallContext, RecallScope
from memorybus_providers.builtin import files, store

MINE = RecallContext(RecallScope(agent="coder", user="ann"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home that does not exist yet."""
    return tmp_path / "home"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let who finds the store locked wait longer than a busy machine or disk may stand still."""
    monkeypatch.setattr(store, "LOCK_WAIT_MS", 40_000)


@pytest.fixture
def provider(home: Path) -> Any:
    """Return an open provider."""
    provider = provider_at(home)
    provider.open()
    yield provider
    provider.shutdown()


def test_writes_reach_both_files(provider, home):
    """Each store has its own file in the format of Hermes Agent."""
    feed(provider, add("uses ruff"), add("likes tea", "user"), add("uses mypy"))
    feed(provider, replace("ruff", "uses ruff 0.17"), remove("tea", "user"), first=4)

    assert memory_file(home).read_text() == "uses ruff 0.17\n§\nuses mypy"
    assert user_file(home).read_text() == ""


def test_files_and_folders_are_private(provider, home):
    """Others on the host cannot read what is remembered."""
    feed(provider, add("private"))

    assert stat.S_IMODE(memory_file(home).stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_batch_writes_a_file_once(provider, home, monkeypatch):
    """Five hundred writes of one transaction are one rename (and one row)."""
    consumed: list[Path] = []
    consume = files.consume_token
    monkeypatch.setattr(
        files, "consume_token", lambda f, seq, text: (consumed.append(f), consume(f, seq, text))
    )

    feed(provider, *(add(f"fact {n}") for n in range(500)))

    assert consumed == [memory_file(home)]
    assert memory_file(home).read_text().count("§") == 499


def test_nothing_but_the_files_is_left(provider, home):
    """Tokens are gone once the writes are in their files."""
    feed(provider, add("one"), add("two", "user"))
    feed(provider, remove("absent"), first=3)

    names = {p.name for p in home.rglob("*") if p.is_file()}
    assert names - {"state.db-wal", "state.db-shm"} == {"state.db", "MEMORY.md", "USER.md"}


def test_leftovers_of_transactions_that_never_committed_go(provider, home):
    """A token that no committed write owns is removed with the file's next write."""
    feed(provider, add("one"))
    token = files.token_of(memory_file(home), 77)
    token.touch()
    feed(provider, add("two"), first=2)

    assert not token.exists()
    assert memory_file(home).read_text() == "one\n§\ntwo"


def test_a_write_outside_a_transaction_is_refused(provider):
    """A write that would never be committed is an error, not a silence."""
    feed(provider, add("kept"))

    with pytest.raises(RuntimeError, match="outside a transaction"):
        provider.on_memory_write(add("lost"), _context())


@pytest.mark.parametrize("edited", ["by hand\n§\none\n", "one\r\n§\r\nby hand\r\n"])
def test_hand_edits_survive_writes(provider, home, edited):
    """A write is applied to the file as it stands, whatever a person made of it."""
    feed(provider, add("one"), add("two"))
    memory_file(home).write_bytes(edited.encode())
    feed(provider, add("three"), replace("one", "one!"), first=3)

    text = memory_file(home).read_text()
    assert text == "\n§\n".join(e.replace("one", "one!") for e in _entries(edited)) + "\n§\nthree"


def test_bytes_that_are_not_text_survive(provider, home):
    """An editor's Latin-1 stays as it is in the file, and is shown with a replacement sign."""
    feed(provider, add("one"))
    memory_file(home).write_bytes(b"\xd8l\n\xc2\xa7\none")
    feed(provider, add("two"), first=2)

    assert memory_file(home).read_bytes() == b"\xd8l\n\xc2\xa7\none\n\xc2\xa7\ntwo"
    assert "\ufffdl" in {r.text for r in provider.prefetch("", MINE)}


def test_a_write_that_changes_nothing_leaves_the_formatting(provider, home):
    """A duplicate does not rewrite a file that a person has laid out."""
    feed(provider, add("one"))
    memory_file(home).write_text("\n\none\n  §  \n\nmine\n")
    feed(provider, add("one"), first=2)

    assert memory_file(home).read_text() == "\n\none\n  §  \n\nmine\n"


def test_a_rewritten_file_keeps_its_permissions(provider, home):
    """Who opened a file to a group finds it open after a write."""
    feed(provider, add("one"))
    memory_file(home).chmod(0o640)
    feed(provider, add("two"), first=2)

    assert stat.S_IMODE(memory_file(home).stat().st_mode) == 0o640


def test_a_deleted_file_is_made_again(provider, home):
    """A person who deletes a file has emptied the store; the next write starts it anew."""
    feed(provider, add("one"))
    memory_file(home).unlink()
    feed(provider, add("two"), first=2)

    assert memory_file(home).read_text() == "two"


def test_misfits_are_counted_and_named_without_their_text(provider, caplog):
    """What matches nothing is no error: it is counted, and the log does not tell the text."""
    with caplog.at_level(logging.WARNING):
        feed(provider, add("a b"), add("a b"), add("a c"), remove("secret"), replace("a", "new"))

    assert provider.outcomes() == {"done": 2, "duplicate": 1, "unmatched": 1, "ambiguous": 1}
    assert [r.getMessage().rpartition(": ")[2] for r in caplog.records] == [
        "unmatched",
        "ambiguous",
    ]
    assert "secret" not in caplog.text
    assert [r.text for r in provider.prefetch("", MINE)] == ["new", "a c", "a b"]


def test_recollections_tell_where_they_come_from(provider, home):
    """An entry carries the session and time of its write; a hand-made one carries none."""
    feed(provider, add("likes tea", "user"), add("likes coffee", "user"))
    user_file(home).write_text(user_file(home).read_text() + "\n§\nlikes milk")

    found = {r.text: (r.session, r.at) for r in provider.prefetch("likes", MINE)}

    assert found == {
        "likes tea": ("s1", 1_000),
        "likes coffee": ("s2", 2_000),
        "likes milk": ("", 0),
    }


def test_the_origin_goes_with_the_entry(provider):
    """An entry that was removed and written again is as old as its second write."""
    feed(provider, add("likes tea", "user"))
    feed(provider, remove("tea", "user"), first=2)
    feed(provider, add("likes tea", "user"), first=3)

    assert [r.at for r in provider.prefetch("tea", MINE)] == [3_000]


@pytest.mark.usefixtures("patient")
def test_a_reader_needs_no_lock_and_sees_what_is_pending(home):
    """While another process holds the store, committed writes are recalled (G9)."""
    writer = provider_at(home, _die_at("builtin.after_commit"))
    writer.open()
    with pytest.raises(Died):
        feed(writer, add("likes tea"))
    holder = sqlite3.connect(home / "state.db", isolation_level=None)
    holder.execute("begin immediate")
    reader = provider_at(home)
    began = SYSTEM.monotonic()
    reader.open()

    assert SYSTEM.monotonic() - began < 20
    assert not memory_file(home).exists()
    assert [r.text for r in reader.prefetch("tea", MINE)] == ["likes tea"]

    holder.execute("rollback")
    holder.close()
    reader.shutdown()
    writer.shutdown()


def test_a_reader_sees_a_rename_under_its_eyes_once(home, monkeypatch):
    """A write that reaches its file between two looks of a reader is not shown twice."""
    memory_file(home).parent.mkdir(parents=True)
    memory_file(home).write_text("x\n§\nx")
    writer = provider_at(home, _die_at("builtin.after_commit"))
    writer.open()
    with pytest.raises(Died):
        feed(writer, remove("x"))
    read = files.read

    def read_behind_the_writer(file: Path) -> str:
        monkeypatch.setattr(files, "read", read)
        writer._store.settle()
        return read(file)

    monkeypatch.setattr(files, "read", read_behind_the_writer)
    found = [r.text for r in writer.prefetch("", MINE)]
    writer.shutdown()

    assert found == ["x"]


def test_a_busy_new_file_can_be_opened(provider, home, monkeypatch):
    """Who meets another process at a database not yet in WAL mode leaves the switch to it."""
    monkeypatch.setattr(store, "LOCK_WAIT_MS", 200)
    provider.shutdown()
    holder = sqlite3.connect(home / "state.db", isolation_level=None)
    holder.execute("pragma journal_mode = delete")
    holder.execute("begin")
    holder.execute("select * from pending").fetchall()

    provider.open()

    assert provider.prefetch("", MINE) == []
    holder.close()


@pytest.mark.usefixtures("patient")
@pytest.mark.slow(reason="two real writers")
def test_two_writers_of_one_home_take_turns(home):
    """Workers that share a home bring each other's writes to the files, each once (G4)."""

    def work(first: int) -> None:
        provider = provider_at(home)
        provider.open()
        for n in range(first, first + 30):
            feed(provider, add(f"fact {n}"), first=n)
        provider.shutdown()

    work(1_000)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (2_000, 3_000)))

    entries = memory_file(home).read_text().split("\n§\n")
    expected = [f"fact {n + i}" for n in (1_000, 2_000, 3_000) for i in range(30)]
    assert sorted(entries) == expected
    assert [e for e in entries if " 2" in e] == expected[30:60], "one writer's order is lost"


def test_a_locked_store_is_transient(provider, home):
    """A write that meets another process's transaction is worth another try."""
    provider._store._db.execute("pragma busy_timeout = 0")
    holder = sqlite3.connect(home / "state.db", isolation_level=None)
    holder.execute("begin immediate")

    with pytest.raises(Transient) as failure:
        feed(provider, add("one"))

    assert not isinstance(failure.value, Unavailable)
    holder.close()


def test_a_file_that_cannot_be_read_stops_only_its_owner(provider, home):
    """A folder in a file's place is named and refused; once it is gone, all is well (G6)."""
    memory_file(home).mkdir(parents=True)
    with pytest.raises(Permanent, match=r"MEMORY\.md"):
        feed(provider, add("one"))
    memory_file(home).rmdir()
    feed(provider, add("one"))

    assert memory_file(home).read_text() == "one"


def test_nothing_is_committed_while_a_file_cannot_be_written(provider, home, monkeypatch):
    """A full disk after the commit holds later batches back, and loses nothing (G4, G10)."""

    def disk_full(file: Path, seq: int, text: str | None) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files, "consume_token", disk_full)
        for first, text in ((1, "one"), (2, "two")):
            with pytest.raises(Unavailable, match="No space"):
                feed(provider, add(text), first=first)
    progress = provider.progress(LANE)
    feed(provider, add("one"), add("two"))

    assert progress is not None
    assert progress.n == 1
    assert memory_file(home).read_text() == "one\n§\ntwo"


def test_a_damaged_database_is_unavailable(home):
    """A file that is no database is named; nothing is parked because of it."""
    home.mkdir()
    (home / "state.db").write_bytes(b"not a database" * 100)
    provider = provider_at(home)

    with pytest.raises(Unavailable, match="not a database"):
        provider.open()
    provider.shutdown()


def test_system_prompt_block_shows_one_agent_and_person(home):
    """It holds the stores of its scope alone, without a host's banner; of everyone's, nothing."""
    provider = provider_at(home, user_limit=9)
    provider.open()
    feed(provider, add("uses ruff"), add("likes tea", "user"), add("likes milk", "user"))
    feed(provider, add("not mine", "user"), first=4, scope=Scope(user="bob"))
    shown = provider.system_prompt_block(RecallScope(agent="coder", user="ann"))
    empty = provider.system_prompt_block(RecallScope(agent=None, user=None))
    provider.shutdown()

    assert shown == "Your notes:\n- uses ruff\n\nAbout the user [2 older left out]:"
    assert empty == ""


@pytest.mark.parametrize("options", [{"memory_limit": "many"}, {"memory_limt": 3}])
def test_bad_options_are_refused(home, options):
    """An option of the wrong type or name is a configuration error that names it."""
    with pytest.raises(ConfigError, match="memory_lim"):
        provider_at(home, **options)


def test_a_commit_is_synced_before_the_file_changes(provider):
    """At a power failure no file is ahead of its ledger: SQLite syncs every commit (G4)."""
    assert provider._store._db.execute("pragma synchronous").fetchone() == (2,)


def test_a_files_text_is_on_the_disk_before_it_has_its_name(home, monkeypatch):
    """G4: after a power loss a file has its old text or its new one, and its folders are there."""
    file = home / "agents" / "coder" / "MEMORY.md"
    syncs = note_syncs(monkeypatch)
    files.place_token(home, file, 7)
    assert [sync.path for sync in syncs] == [file.parent, file.parent.parent, home]
    assert files.token_of(file, 7).name in syncs[0].beside
    syncs.clear()
    files.consume_token(file, 7, "the new text")
    text, folder = syncs
    assert text.data == b"the new text"
    assert file.name not in text.beside
    assert folder.path == file.parent
    assert folder.beside == {file.name}


def test_use_before_open_says_so(home):
    """A hook on an instance that is not open is a clear error and touches no disk."""
    with pytest.raises(RuntimeError, match="not open"):
        provider_at(home).progress(LANE)
    assert not os.path.exists(home)


class Died(BaseException):
    """Stands for a process that ends at a crash point."""


def _die_at(point: str) -> Any:
    def crash(name: str) -> None:
        if name == point:
            raise Died

    return crash


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split("§")]


def _context() -> HookContext:
    return HookContext(ME, SessionRef(id="s", root="s"), "0" * 32, Position(0, "1-1", 1), 1, 5.0)


ANN = RecallScope(None, "ann", None)
BOB = msgspec.structs.replace(ME, user="bob")


def test_what_an_agent_noted_of_a_person_goes_with_the_person(provider, home):
    """An agent's notes from a person's sessions are erased; those from others' sessions stay."""
    feed(provider, add("ann likes quinces"), add("ann is called ann", "user"))
    feed(provider, add("bob likes pears"), first=3, scope=BOB)

    residue = provider.forget(ANN)

    assert (residue.erased, residue.remains) == (2, ())
    assert memory_file(home).read_text() == "bob likes pears"
    assert not (home / "user" / "ann").exists()


def test_what_an_agent_wrote_of_persons_goes_with_the_agent(provider, home):
    """An agent's erasure takes its own file, and its entries in the files of persons."""
    feed(provider, add("a note"), add("from the coder", "user"))
    cook = Scope(agent="cook", user="ann")
    feed(provider, add("from the cook", "user"), first=3, scope=cook)

    provider.forget(RecallScope(ME.agent, None, None))

    assert not (home / "memory" / ME.agent).exists()
    assert (home / "user" / "ann" / "USER.md").read_text() == "from the cook"


def test_what_was_written_by_hand_is_named(provider, home):
    """An entry whose writer nobody knows stays in another's file, and the residue counts it."""
    feed(provider, add("noted"))
    file = memory_file(home)
    file.write_text(file.read_text() + "\n§\nby hand")

    residue = provider.forget(ANN)

    assert file.read_text() == "by hand"
    assert ["1 entries" in said for said in residue.remains] == [True]


def test_files_of_others_in_a_persons_folder_are_named(provider, home):
    """A folder with files that are not ours stays, and the residue names it."""
    feed(provider, add("noted", "user"))
    folder = home / "user" / "ann"
    (folder / "USER.md.bak").write_text("noted")

    residue = provider.forget(ANN)

    assert [str(folder) in said for said in residue.remains] == [True]
