"""Provider instances that are added late, stand still, go on, and go."""

import json
import tomllib
from pathlib import Path

import msgspec
import pytest
import redis
from helpers.archive.sealed_log import QUICK
from helpers.making import MakeSettings
from helpers.processes.commands import Ran, run_command
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.providers.recording import state_digest, texts
from helpers.stories.described import troubles
from helpers.stories.replaying import begun
from helpers.stories.scenario import TESTS, home, log_length, publish, recorded, wait_applied
from memorybus.config.settings import Settings, load, to_environ
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Home
from memorybus.registry.instances import Instance, Live, live_name
from memorybus_console.operations.stores import Stores
from memorybus_workers.archiving.archiver import run_once

FILE = """# how we remember
batch = 16            # small
providers = [
    "rec",  # the first
]

[provider.rec]
kind = "helpers.providers.recording:Transactional"  # for tests
"""

KIND = "helpers.providers.recording:Transactional"
ADD = ("provider", "setup", f"late={KIND}", "--yes", "--no-test")


class Place:
    """A directory with a settings file, and commands that read it."""

    def __init__(self, settings: Settings, directory: Path, spawn: Spawn) -> None:
        self.path = directory / "memorybus.toml"
        self.path.write_text(FILE)
        self._spawn = spawn
        given = to_environ(settings, {})
        for name in ("PROVIDERS", "PROVIDER", "BATCH"):
            del given[f"MEMORYBUS_{name}"]
        self.environ = given | {"MEMORYBUS_CONFIG": str(self.path), "PYTHONPATH": str(TESTS)}

    def run(self, *words: str) -> Ran:
        """Run a command to its end."""
        return run_command(self.environ, *words)

    def done(self, *words: str) -> str:
        """Run a command that shall succeed; return what it said."""
        ran = self.run(*words)
        assert ran.returncode == 0, ran.output
        return ran.output

    def worker(self) -> Child:
        """Start a worker that reads the file."""
        child = self._spawn("-m", "memorybus_workers", "worker", "--jobs", "0", env=self.environ)
        child.wait_output('"ready":true')
        return child

    def forget_late(self) -> None:
        """Delete the block of the late instance, as a person does before it is removed."""
        self.path.write_text(FILE)

    @property
    def settings(self) -> Settings:
        """What a command finds now."""
        return load(environ=self.environ)


@pytest.fixture
def place(
    redis_client: redis.Redis, make_settings: MakeSettings, tmp_path: Path, spawn: Spawn
) -> Place:
    """Return a place whose file names one provider."""
    return Place(make_settings(), tmp_path, spawn)


def test_who_comes_late_catches_up(place, redis_client):
    """G8: an instance added late begins at the beginning of the history, and is then live."""
    publish(place.settings, "s", "one", "two")
    first = place.worker()
    assert "restart" in place.done(*ADD)
    first.terminate()
    place.worker()
    publish(place.settings, "s", "three")
    for name in ("rec", "late"):
        wait_applied(redis_client, place.settings, name)
    assert texts(home(place.settings, "late")) == ["one", "two", "three"]
    assert state_digest(home(place.settings, "late")) == state_digest(home(place.settings))


def test_who_comes_late_reads_the_archive(redis_client, make_settings, tmp_path, spawn):
    """G7, G8: what the log has no more comes from the archive; then it is live as others are."""
    place = Place(make_settings(**QUICK), tmp_path, spawn)
    old = [f"old {number}" for number in range(120)]
    publish(place.settings, "s", *old)
    run_once(place.settings)
    assert log_length(redis_client, place.settings) <= place.settings.partitions
    publish(place.settings, "s", "in the log")
    place.done(*ADD)
    place.worker()
    publish(place.settings, "s", "live")
    for name in ("rec", "late"):
        wait_applied(redis_client, place.settings, name)
    assert texts(home(place.settings, "late")) == [*old, "in the log", "live"]
    assert state_digest(home(place.settings, "late")) == state_digest(home(place.settings))


def test_who_comes_late_may_begin_now(place, redis_client):
    """G8: from now on, or from a moment: what lies before is passed without a call."""
    publish(place.settings, "s", "one", "two")
    place.done(*ADD, "--from", "now")
    publish(place.settings, "s", "three")
    place.worker()
    wait_applied(redis_client, place.settings, "late")
    assert texts(home(place.settings, "late")) == ["three"]


def test_the_file_keeps_its_comments(place):
    """A settings file is edited as a person would: what was there stays as it was."""
    place.done(*ADD, "--set", "busy=7", "--set", "note=a b")
    text = place.path.read_text()
    assert text.startswith("# how we remember\nbatch = 16            # small\n")
    assert '"rec",  # the first' in text
    assert "# for tests" in text
    assert tomllib.loads(text)["provider"]["late"] == {"kind": KIND, "busy": 7, "note": "a b"}
    assert place.settings.providers == ("rec", "late")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("rec=builtin",), "choose another name"),
        (("rec", "--from", "now"), "--from is for new instances"),
        (("x=nobody-has-it",), "nobody-has-it"),
        (("x=builtin", "--set", "nonsense=1"), "nonsense"),
        (("x=holographic", "--set", "nonsense=1"), "its options are: embedder"),
        (("x=builtin", "--set", "api_key=sk-1"), "environment"),
        (("x=builtin", "--set", "password"), "NAME=VALUE"),
        (("x=builtin", "--from", "yesterday"), "not a time, position or event"),
        (("../x=builtin",), "instance's name"),
    ],
)
def test_what_cannot_be_set_up(place, words, why):
    """A wrong option is refused before anything is written, and no error shows a secret."""
    ran = place.run("provider", "setup", *words, "--yes", "--no-test")
    assert ran.returncode == 2, ran.output
    assert why in ran.output
    assert "sk-1" not in ran.output
    assert place.path.read_text() == FILE


def test_a_removal_prints_as_json_what_is_documented(place):
    """With --json a plan and what was done have the shape that `memorybus schema` describes."""
    words = ("provider", "remove", "late", "--reason", "x")
    place.done(*ADD)
    plan = place.done(*words, "--json")
    assert "[provider.late]" in json.loads(plan)["block"]
    assert not list(troubles(words, plan)), plan
    place.forget_late()
    publish(place.settings, "s", "one")
    done = place.done(*words, "--yes", "--json")
    assert not list(troubles(words, done)), done


def test_nothing_is_removed_that_the_settings_name(place, redis_client):
    """G4: while the settings name an instance, the next worker would apply all to it again."""
    publish(place.settings, "s", "one")
    place.worker()
    wait_applied(redis_client, place.settings)
    refused = place.run("provider", "remove", "rec", "--reason", "x", "--yes")
    assert refused.returncode == 2
    assert "delete 'rec' from `providers` and the table [provider.rec]" in refused.output
    assert str(place.path) in refused.output
    assert place.path.read_text() == FILE
    publish(place.settings, "s", "two")
    wait_applied(redis_client, place.settings)
    assert texts(home(place.settings)) == ["one", "two"]


def test_a_pause_is_seen_and_ends(place, redis_client):
    """G7: a paused instance stands still, status and doctor say why; resumed, it lacks nothing."""
    place.worker()
    said = place.done("provider", "pause", "rec", "--reason", "its disk is full")
    assert "recalled" in said
    leases = f"{place.settings.namespace}:*:lease:rec"
    wait_until(lambda: not list(redis_client.scan_iter(leases)), "its lanes are given up")
    publish(place.settings, "s", "one")
    assert "its disk is full" in place.done("status")
    assert "its disk is full" in place.done("provider", "ls")
    assert "resume rec" in place.run("doctor").output
    again = place.done("provider", "pause", "rec", "--reason", "again")
    assert "paused already" in again
    assert texts(home(place.settings)) == []
    place.done("provider", "resume", "rec")
    wait_applied(redis_client, place.settings)
    assert texts(home(place.settings)).count("one") == 1
    assert "is not paused" in place.done("provider", "resume", "rec")
    assert place.run("provider", "pause", "nobody", "--reason", "x").returncode == 2


def test_a_removal_leaves_no_key(place, redis_client):
    """G10: a removed instance leaves nothing in Redis; its state stays unless told otherwise."""
    publish(place.settings, "s", "one", "!permanent two")
    place.done(*ADD)
    running = place.worker()
    for name in ("rec", "late"):
        wait_applied(redis_client, place.settings, name)
    said = place.done("provider", "remove", "late")
    assert "1 parked" in said
    assert "nothing was done" in said
    assert "first delete 'late' from `providers` and the table [provider.late]" in said
    assert place.run("provider", "remove", "late", "--yes").returncode == 2
    place.forget_late()
    refused = place.run(*("provider", "remove", "late", "--delete-state", "--reason", "x", "--yes"))
    assert (refused.returncode, "restart" in refused.output) == (1, True)
    said = place.done("provider", "remove", "late", "--reason", "moved", "--yes")
    assert "until they are restarted" in said
    assert place.settings.providers == ("rec",)
    keys = Keys(place.settings.namespace)
    left = [key for key in redis_client.scan_iter() if b"late" in key]
    assert left == []
    assert [g["name"] for g in redis_client.xinfo_groups(keys.log(0))] == [b"rec"]
    assert texts(home(place.settings, "late")) == ["one"]
    publish(place.settings, "s", "three")
    wait_applied(redis_client, place.settings)
    assert [key for key in redis_client.scan_iter() if b"late" in key] == []
    running.terminate()
    place.done("provider", "remove", "late", "--delete-state", "--reason", "x", "--yes")
    assert not home(place.settings, "late").exists()
    with Stores(place.settings) as stores:
        assert "late" not in stores.instances.pauses()


def test_copies_go_first(place, redis_client):
    """G8: an instance of which copies are left is not removed under them."""
    settings = msgspec.structs.replace(place.settings, **recorded("Transactional"))
    begun(settings)
    ran = place.run("provider", "remove", "rec", "--reason", "x", "--yes")
    assert ran.returncode == 2
    assert "replay --cancel" in ran.output
    assert place.path.read_text() == FILE


def test_a_rebuilt_one_is_removed_with_what_serves_it(place, redis_client):
    """G10: the generation that serves goes along; one that is kept for a rollback goes first.

    While workers run that know it, nobody falls back to what an older one remembers.
    """
    publish(place.settings, "s", "one")
    running = place.worker()
    wait_applied(redis_client, place.settings)
    remove = ("provider", "remove", "rec", "--reason", "moved", "--yes")
    with Stores(place.settings) as stores:
        stores.add_instance(Instance(name="rec@1", provider="rec", purpose="rebuild"))
        kept = Live("rec@1", "rec")
        stores.instances.swap("rec", None, kept)
        refused = place.run(*remove)
        assert (refused.returncode, "rebuild --drop rec" in refused.output) == (2, True)
        stores.instances.swap("rec", kept, Live("rec@1"))
        wait_applied(redis_client, place.settings, "rec@1")
        place.path.write_text("providers = []\n")
        assert "with rec@1, which serves it" in place.done(*remove)
        assert stores.instances.all() == {}
        assert live_name("rec", stores.instances.live()) == "rec@1"
        assert list(stores.instances.pauses()) == ["rec"]
        assert place.run("rebuild", "--drop", "rec", "--yes").returncode == 2
        running.terminate()
        place.done(*remove[:-1], "--delete-state", "--yes")
        assert (stores.instances.pauses(), stores.instances.live()) == ({}, {})
    assert not home(place.settings, "rec@1").exists()
    assert not home(place.settings, "rec").exists()
    assert [key for key in redis_client.scan_iter() if key.endswith((b":rec", b":rec@1"))] == []


def test_who_was_removed_may_come_again(place, redis_client):
    """G8: an instance that is added again takes events again, when no worker knows the old one."""
    publish(place.settings, "s", "one")
    place.done(*ADD)
    running = place.worker()
    wait_applied(redis_client, place.settings, "late")
    place.forget_late()
    place.done("provider", "remove", "late", "--reason", "another backend", "--yes")
    refused = place.run(*ADD)
    assert (refused.returncode, "restart them first" in refused.output) == (2, True)
    running.terminate()
    place.done(*ADD)
    publish(place.settings, "s", "two")
    place.worker()
    wait_applied(redis_client, place.settings, "late")
    assert texts(home(place.settings, "late")) == ["one", "two"]


def test_an_addition_that_failed_leaves_no_plan(place, redis_client):
    """G8: if the file cannot be written, the next addition begins where it says, not there."""
    publish(place.settings, "s", "one")
    blocks = place.path.with_name(f".{place.path.name}.new")
    blocks.mkdir()
    late = (*ADD, "--from", "now")
    assert place.run(*late).returncode == place.run(*late).returncode == 1
    blocks.rmdir()
    place.done(*ADD)
    place.worker()
    wait_applied(redis_client, place.settings, "late")
    assert texts(home(place.settings, "late")) == ["one"]


def test_a_state_is_deleted_where_it_lies(place, tmp_path):
    """G10: a state elsewhere is named and kept; of a linked directory only the link is deleted."""
    remove = ("provider", "remove", "rec", "--delete-state", "--reason", "x", "--yes")
    away = Home("f" * 32, "another-host", "/srv/memorybus", "7")
    with Stores(place.settings) as stores:
        stores.homes.move("rec", away)
        refused = place.run(*remove)
        assert refused.returncode == 2
        assert "/srv/memorybus/providers/rec on another-host" in refused.output
        assert stores.homes.all() == {"rec": away}
        stores.homes.forget("rec")
    elsewhere = tmp_path / "disk"
    elsewhere.mkdir()
    home(place.settings).parent.mkdir(parents=True)
    home(place.settings).symlink_to(elsewhere)
    place.path.write_text("providers = []\n")
    assert "is deleted" in place.done(*remove)
    assert not home(place.settings).is_symlink()
    assert elsewhere.is_dir()
