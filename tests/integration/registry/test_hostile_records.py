"""What comes out of Redis names no path, no code and no command: records that a stranger wrote."""

import logging
from typing import Any

import msgspec
import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import NAME, home, publish, recorded, thread_worker, wait_applied
from memorybus.archive.location import archive_of
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, ForeignKey, MissingProvider
from memorybus.health.monitor import read_status
from memorybus.log.stream import EventLog
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instance
from memorybus_console.operations.doctor.instances import check_copies
from memorybus_console.operations.stores import Stores
from memorybus_workers.archiving.archiver import run_once
from memorybus_workers.hosting.instances import make_copy
from memorybus_workers.jobs.live import LiveInstances

COPY = f"{NAME}@1"
DEEP = b"[" * 100_000

HOSTILE = (
    "../../outside",
    "..",
    ".",
    "a/../../../outside",
    "nul\0byte",
    "line\nend",
    "end\n",
    "x" * 5_000,
    "x" * 101,
    "rеc@2",  # the second letter is Cyrillic
    "rec\uff0f@2",  # a full-width slash
    "e\u0301@1",
    "@1",
    "",
)


def planted(client: redis.Redis, settings: Settings, field: str, name: str, **more: Any) -> None:
    """Write a record as anybody who reaches Redis can."""
    body = {"name": name, "provider": NAME, "purpose": "rebuild", **more}
    client.hset(Keys(settings.namespace).instances, field, msgspec.json.encode(body))


def folders(settings: Settings) -> set[str]:
    """Return the instances that have a directory."""
    return {path.name for path in (settings.data_dir / "providers").iterdir()}


def test_a_hostile_name_makes_no_file(redis_client, make_settings, caplog):
    """A worker serves the copies that have a copy's name, and makes nothing for all others."""
    deep = make_settings(**recorded("Transactional"))
    settings = msgspec.structs.replace(deep, data_dir=deep.data_dir / "below" / "data")
    outside = deep.data_dir / "absolute"
    for name in (*HOSTILE, str(outside)):
        planted(redis_client, settings, name, name)
    planted(redis_client, settings, "field@1", "another@1")
    redis_client.hset(Keys(settings.namespace).instances, "deep@1", DEEP)
    planted(redis_client, settings, COPY, COPY)
    publish(settings, "s", "one")
    with caplog.at_level(logging.WARNING, "memorybus"), thread_worker(settings):
        wait_until(lambda: texts(home(settings, COPY)) == ["one"], "the good copy is filled")
        wait_applied(redis_client, settings)
    assert folders(settings) == {NAME, COPY}
    assert [path.name for path in deep.data_dir.iterdir()] == ["below"]
    assert [path.name for path in (deep.data_dir / "below").iterdir()] == ["data"]
    said = [one.message for one in caplog.records if "are ignored" in one.message]
    assert len(said) == 1  # once, in one short line of plain characters
    assert said[0].isascii()
    assert said[0].isprintable()
    assert len(said[0]) < 400
    found = check_copies(settings)
    assert not found.ok
    assert "and 14 more" in found.found
    assert "hdel" in found.fix


@pytest.mark.parametrize("dropped", [False, True])
def test_no_record_speaks_for_an_instance_of_the_settings(dropped, redis_client, make_settings):
    """A record under a configured name neither takes that instance's place nor deletes it."""
    tables = recorded("Transactional")["provider"]
    tables |= {"other": {"kind": "helpers.providers.recording:Transactional"}}
    settings = make_settings(providers=(NAME, "other"), provider=tables)
    publish(settings, "s", "one")
    with thread_worker(settings):
        wait_applied(redis_client, settings, "other")
    planted(redis_client, settings, "other", "other", dropped=dropped)
    planted(redis_client, settings, COPY, COPY, dropped=True)
    planted(redis_client, settings, f"{NAME}@2", f"{NAME}@2")
    with thread_worker(settings, (NAME,)), Stores(settings) as stores:
        wait_until(lambda: texts(home(settings, f"{NAME}@2")) == ["one"], "a copy is filled")
        wait_until(lambda: COPY not in stores.instances.all(), "what was dropped is cleared away")
        assert stores.roster.instances()["other"].copy_of == ""
    assert texts(home(settings, "other")) == ["one"]
    assert "other" in check_copies(settings).found


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != ""])
def test_a_hostile_live_entry_is_not_followed(name, redis_client, settings):
    """Which instance serves is one of ours: any other entry is as none."""
    body = msgspec.json.encode({"instance": name})
    redis_client.hset(Keys(settings.namespace).live, NAME, body)
    with Stores(settings) as stores:
        assert stores.instances.read_view().live == {}
        with pytest.raises(ForeignKey):
            stores.instances.live()


@pytest.mark.parametrize("name", [*HOSTILE, "builtin"])
def test_a_recall_process_opens_no_stranger(name, redis_client, make_settings):
    """A job that names an instance is a stranger's word, too: what is no copy is not opened."""
    settings = make_settings(providers=(NAME, "builtin"), provider=recorded("Blind")["provider"])
    planted(redis_client, settings, name, name)
    opened = LiveInstances(settings, SYSTEM, redis_client, NAME)
    with pytest.raises((MissingProvider, ForeignKey)), opened.visit(name):
        pytest.fail("it was opened")
    assert not (settings.data_dir / "providers").exists()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("hermes:holographic", {"hermes_python": "/tmp/evil"}),
        ("hermes:holographic", {"directory": "../../evil"}),
        ("hermes:holographic", {"hermes_home": "/"}),
        ("hermes:holographic", {"env": ["AWS_SECRET_ACCESS_KEY"]}),
        ("hermes:holographic", {"apart": False}),
        ("ethos:contract.ethos_example:MarkdownNotes", {"dir": "/etc"}),
        ("registry:builtins:list", {"path": "\0"}),
        ("helpers.providers.recording:Blind", {"x" * 10_000: 1}),
        ("builtin", {"kind": "builtins:print"}),
    ],
)
def test_a_record_sets_only_what_its_provider_declares(kind, options, make_settings):
    """Paths, code, commands and whose memories are shown come from the worker's own settings."""
    settings = make_settings(providers=("p",), provider={"p": {"kind": kind}})
    with pytest.raises(ConfigError) as refused:
        make_copy(settings, "p@1", "p", SYSTEM, options=options)
    said = str(refused.value)
    assert len(said) < 600
    assert "cannot be set" in said or "unknown option" in said


def test_what_is_declared_may_be_set(make_settings):
    """What a provider declares as harmless is taken from a record, its own table goes first."""
    table = {"builtin@1": {"user_limit": 7}}
    settings = make_settings(providers=("builtin",), provider=table)
    options = {"memory_limit": 9, "user_limit": 8}
    made = make_copy(settings, "builtin@1", "builtin", SYSTEM, options=options)
    assert made.config.options == {"memory_limit": 9, "user_limit": 7}


def test_the_settings_say_where_a_shared_copy_lies(make_settings):
    """G8: a copy's own table gives it a place; without one it is not made in its provider's."""
    mine = recorded("KeyedShared")["provider"]
    plain = make_settings(providers=(NAME,), provider=mine)
    with pytest.raises(ConfigError, match=rf'\[provider\."{COPY}"\] with collection'):
        make_copy(plain, COPY, NAME, SYSTEM, options={})
    own = make_settings(providers=(NAME,), provider=mine | {COPY: {"collection": "two"}})
    made = make_copy(own, COPY, NAME, SYSTEM, options={})
    assert made.config.home.name == "collection-two"


def test_why_a_copy_is_not_served_is_told(redis_client, make_settings):
    """G9: status says which option is not obeyed and what to do; everything else goes on."""
    settings = make_settings(**recorded("Transactional"))
    planted(redis_client, settings, COPY, COPY, options={"busy": 1})
    publish(settings, "s", "one")
    with thread_worker(settings):
        wait_applied(redis_client, settings)
        wait_until(lambda: read_status(settings).copies[0].failing, "it is told")
        said = read_status(settings).copies[0].failing
    assert "busy cannot be set by a copy's record" in said
    assert f'[provider."{COPY}"]' in said
    assert folders(settings) == {NAME}


@pytest.mark.parametrize("log", ["../../outside", "/outside", "a\0b", "x" * 65, "é", ""])
def test_a_hostile_log_id_is_no_folder(log, redis_client, make_settings, tmp_path):
    """G7: the archive's folder is called by the log's id, and nothing else can be one."""
    settings = make_settings(archive=str(tmp_path / "a" / "archive"), seal_after=0, segment_age=0)
    EventLog(redis_client, settings).open()
    publish(settings, "s", "one")
    redis_client.hset(Keys(settings.namespace).meta, "log", log)
    with pytest.raises(ForeignKey, match="`log` is"):
        archive_of(redis_client, settings)
    with pytest.raises(ForeignKey, match="`log` is"):
        run_once(settings)
    assert list(tmp_path.iterdir()) == []


def test_a_name_of_the_settings_is_checked_alike(make_settings):
    """The same rule holds for what the settings name."""
    for wrong in HOSTILE:
        with pytest.raises(ConfigError, match="make an instance's name"):
            Settings(providers=(wrong,))
        with pytest.raises(ConfigError, match="make an instance's name"):
            Settings(provider={wrong: {}})
    assert Instance(name=COPY, provider=NAME).name in make_settings(providers=(COPY,)).providers
