"""The database file: opened by several, damaged, of another release."""

import subprocess
import sys
from pathlib import Path

import pytest
from memorybus.errors import Unavailable
from memorybus_providers.base import Fence, ProviderConfig
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.holographic.provider import FILE_NAME
from unit.holographic.holographic_feeding import LANE, add, ask, context, feed, opened, texts, turn

OPEN = """
import sys
from pathlib import Path
from memorybus_providers.base import ProviderConfig
from memorybus_providers.holographic import HolographicProvider

provider = HolographicProvider(ProviderConfig(name="h", home=Path(sys.argv[1])))
sys.stdin.readline()
provider.open()
provider.shutdown()
"""


def unopened(home: Path) -> HolographicProvider:
    """Return a provider that is not open."""
    return HolographicProvider(ProviderConfig(name="holographic", home=home))


@pytest.mark.slow(reason="starts processes")
def test_several_processes_may_open_a_new_database_at_once(tmp_path):
    """Whoever is first creates the tables; nobody fails."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, str(tmp_path / "new")],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()

    ends = [child.communicate()[1] for child in children]
    assert [child.returncode for child in children] == [0] * 4, ends


def test_a_reader_sees_what_is_committed_and_never_waits(tmp_path):
    """Recall on another instance goes on while a lane writes, and sees whole batches only."""
    with opened(tmp_path) as writer, opened(tmp_path) as reader:
        feed(writer, [turn("A heron")])
        with writer.transaction(Fence(LANE, 1)):
            writer.sync_turn(turn("Another heron"), context(2))
            during = texts(reader, "heron")

        assert during == ["A heron"]
        assert set(texts(reader, "heron")) == {"A heron", "Another heron"}


def test_opening_and_closing_twice_is_safe(tmp_path):
    """`open` and `shutdown` may be repeated, and an instance may be opened again."""
    provider = unopened(tmp_path)
    provider.shutdown()
    provider.open()
    provider.open()
    feed(provider, [turn("A heron")])
    provider.shutdown()
    provider.shutdown()
    provider.open()

    assert texts(provider, "heron") == ["A heron"]
    provider.shutdown()


def test_an_unopened_provider_says_so(tmp_path):
    """A call before `open` fails with the file's name, not with an attribute error."""
    with pytest.raises(Unavailable, match="not open"):
        ask(unopened(tmp_path), "heron")


@pytest.mark.parametrize("garbage", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 500])
def test_a_file_that_is_no_database_is_named(garbage, tmp_path):
    """A damaged file makes the provider unavailable, with name and remedy; it is left as it is."""
    path = tmp_path / FILE_NAME
    path.write_bytes(garbage)

    with pytest.raises(Unavailable, match="Move the file away") as raised:
        unopened(tmp_path).open()

    assert str(path) in str(raised.value)
    assert path.read_bytes() == garbage


def test_a_file_damaged_later_parks_nothing(tmp_path):
    """Damage found while events are applied makes the provider unavailable too (G6)."""
    with opened(tmp_path) as provider:
        feed(provider, [turn("A heron" * 50) for _ in range(200)])
    path = tmp_path / FILE_NAME
    data = bytearray(path.read_bytes())
    data[8_192:] = b"\xa5" * (len(data) - 8_192)
    path.write_bytes(data)

    with pytest.raises(Unavailable, match="Move the file away"), opened(tmp_path) as provider:
        feed(provider, [turn("Another heron")], first=500)


def test_a_newer_schema_is_not_touched(tmp_path):
    """A database of a later release is refused, and the message says what to do."""
    with opened(tmp_path) as provider:
        provider.opened.db.execute("pragma user_version = 99")

    with pytest.raises(Unavailable, match="upgrade memorybus"):
        unopened(tmp_path).open()


def test_an_older_schema_is_not_guessed_at(tmp_path):
    """A database of an earlier release is refused, and the message says how it is filled anew."""
    with opened(tmp_path) as provider:
        provider.opened.db.execute("pragma user_version = 1")

    with pytest.raises(Unavailable, match="fills a new one from history"):
        unopened(tmp_path).open()


def test_the_last_schema_gets_what_it_lacks(tmp_path):
    """A database of the last release is opened with its facts, and gets the tables it lacks."""
    with opened(tmp_path) as provider:
        feed(provider, [add("tea at four")])
        provider.opened.db.executescript("drop table curations; pragma user_version = 7")

    with opened(tmp_path) as provider:
        assert texts(provider, "When is tea?") == ["tea at four"]


def test_opening_waits_for_no_writer(tmp_path):
    """An instance that only recalls opens a file while a lane has it locked."""
    with opened(tmp_path) as provider:
        provider.opened.db.execute("begin immediate")
        with opened(tmp_path) as other:
            assert other.opened.db is not provider.opened.db
        provider.opened.db.execute("rollback")


def test_a_home_that_cannot_be_made_is_named(tmp_path):
    """A file where the home should be is an error that names it."""
    (tmp_path / "home").write_text("in the way")

    with pytest.raises(Unavailable, match="cannot be opened"):
        unopened(tmp_path / "home").open()


def test_the_backup_holds_the_database(provider):
    """What must be copied is the database and the files SQLite keeps beside it."""
    feed(provider, [turn("A heron")])

    assert [path.name for path in provider.backup_paths() if path.exists()] == [
        "holographic.db",
        "holographic.db-wal",
        "holographic.db-shm",
    ]
