"""Homes of local providers: one place, whoever asks, and a copy of it is another (G3, G4)."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
import redis
from helpers.processes.synced import note_syncs
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, ForeignKey, LogUnavailable
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.homes import EMBEDDED, FILE, Home, Homes, is_same_home, local_home, place_id

OURS = Home("a" * 32, "garden", "/var/mb", "7")
THEIRS = Home("b" * 32, "kitchen", "/var/mb", "7")


def homes(client: redis.Redis, settings: Settings) -> Homes:
    """Return the homes of a test's namespace."""
    return Homes(client, Keys(settings.namespace))


def test_a_place_keeps_its_id(make_settings):
    """The id of a data directory is made once, and read ever after."""
    settings = make_settings(url="redis://h:1")
    first = place_id(settings)
    assert place_id(settings, lambda: "0" * 32) == first
    assert local_home(settings).place == first
    assert sorted(path.name for path in settings.data_dir.iterdir()) == ["place", "place.lock"]


def test_a_place_is_on_the_disk_before_it_is_used(make_settings, monkeypatch):
    """G9: Redis never remembers an id that the directory loses in a power loss."""
    settings = make_settings()
    syncs = note_syncs(monkeypatch)
    place = place_id(settings)
    (sync,) = syncs
    assert sync.data.decode().strip() == place
    assert FILE not in sync.beside


def test_many_who_ask_first_get_one_id(make_settings):
    """Processes that start at once agree on one id, and none reads half of it."""
    settings = make_settings(url="redis://h:1")
    at_once = threading.Barrier(8)

    def asked(number: int) -> str:
        at_once.wait(10)
        return place_id(settings, lambda: f"{number:032x}")

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(asked, range(8)))
    assert len(found) == 1


def test_a_broken_place_is_told(make_settings):
    """G10: a file that holds no id, and a directory that cannot be, are errors with a remedy."""
    settings = make_settings(url="redis://h:1")
    (settings.data_dir / FILE).write_bytes(b"\xff\x00 not an id")
    with pytest.raises(ConfigError, match="delete it"):
        place_id(settings)
    blocked = settings.data_dir / FILE / "below a file"
    with pytest.raises(ConfigError, match="make data_dir writable"):
        place_id(make_settings(url="redis://h:1", data_dir=blocked))


@pytest.mark.parametrize(
    ("ours", "same"),
    [
        (OURS, True),
        (msgspec.structs.replace(OURS, host="attic"), True),  # a volume that another host mounts
        (msgspec.structs.replace(OURS, path="/srv/mb"), True),  # renamed
        (msgspec.structs.replace(OURS, mark="8"), True),  # restored where it was
        (msgspec.structs.replace(OURS, path="/srv/mb", mark="8"), False),  # a copy on this host
        (msgspec.structs.replace(OURS, host="attic", mark="8"), False),  # a copy on another
        (msgspec.structs.replace(OURS, place="b" * 32), False),
    ],
)
def test_a_copy_is_told_from_a_move(ours, same):
    """G4: what was renamed or mounted elsewhere is the home; what was copied elsewhere is not."""
    assert is_same_home(OURS, ours) is same


def test_a_directory_that_was_renamed_is_still_the_home(redis_client, make_settings):
    """A data directory that moved on its disk stays the home, and is noted where it is now."""
    before = make_settings(data_dir=make_settings().data_dir / "old")
    homes(redis_client, before).claim("notes", local_home(before))
    after = make_settings(data_dir=before.data_dir.rename(before.data_dir.with_name("new")))
    assert homes(redis_client, after).claim("notes", local_home(after)) == local_home(after)
    assert homes(redis_client, after).all()["notes"].path == str(after.data_dir)


def test_a_copied_directory_is_not_the_home(redis_client, make_settings):
    """G4: a cloned data directory, or a backup restored beside it, does not serve by itself."""
    original = make_settings(data_dir=make_settings().data_dir / "original")
    holder = homes(redis_client, original).claim("notes", local_home(original))
    copied = _copied(original.data_dir)
    clone = make_settings(data_dir=copied)
    assert local_home(clone).place == holder.place
    assert homes(redis_client, clone).claim("notes", local_home(clone)) == holder
    assert homes(redis_client, clone).all() == {"notes": holder}


def test_a_copy_with_its_own_log_is_at_home(redis_client, make_settings):
    """A data directory restored with the embedded server's log in it works without more words."""
    original = make_settings(url="", data_dir=make_settings().data_dir / "original")
    homes(redis_client, original).claim("notes", local_home(original))
    clone = make_settings(url="", data_dir=_copied(original.data_dir))
    assert local_home(clone).mark == EMBEDDED
    assert homes(redis_client, clone).claim("notes", local_home(clone)) == local_home(clone)


def _copied(directory: Path) -> Path:
    place_before = (directory / FILE).read_text()
    copied = Path(shutil.copytree(directory, directory.with_name("copy")))
    assert (copied / FILE).read_text() == place_before
    return copied


def test_the_first_claim_holds(redis_client, settings):
    """G4: a provider has one home, that of who came first; another provider may have another."""
    mine = homes(redis_client, settings)
    assert mine.claim("notes", OURS) == OURS
    assert mine.claim("notes", THEIRS) == OURS
    assert mine.claim("graph", THEIRS) == THEIRS
    assert mine.all() == {"graph": THEIRS, "notes": OURS}


def test_claims_at_once_have_one_winner(redis_client, settings):
    """G4: of workers on many hosts that start together, one place becomes the home for all."""
    at_once = threading.Barrier(8)

    def claimed(number: int) -> Home:
        redis = connect_redis(settings)
        at_once.wait(10)
        home = Home(f"{number:032x}", f"host{number}", mark=str(number))
        holder = homes(redis, settings).claim("notes", home)
        redis.close()
        return holder

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(claimed, range(8)))
    assert found == {homes(redis_client, settings).all()["notes"]}


def test_a_moved_home_is_learned_at_the_next_claim(redis_client, settings):
    """G5: after a move the old place is told so when it asks again, and the new one holds."""
    mine = homes(redis_client, settings)
    mine.claim("notes", OURS)
    assert mine.find_elsewhere(["notes"], OURS) == {}
    mine.move("notes", THEIRS)
    assert mine.find_elsewhere(["notes"], OURS) == {"notes": THEIRS}
    assert mine.find_elsewhere(["notes"], THEIRS) == {}
    assert mine.claim("notes", OURS) == THEIRS
    assert mine.claim("notes", THEIRS) == THEIRS


def test_a_home_that_redis_lost_is_claimed_again(redis_client, settings):
    """G4: a running worker claims its home anew if Redis forgot it, before another may."""
    mine = homes(redis_client, settings)
    mine.claim("notes", OURS)
    redis_client.delete(Keys(settings.namespace).homes)
    assert mine.find_elsewhere(["notes"], OURS) == {}
    assert mine.claim("notes", THEIRS) == OURS


def test_a_look_at_known_homes_writes_nothing(redis_client, settings):
    """A look at each heartbeat costs a read, also where several hosts mount one volume."""
    mine = homes(redis_client, settings)
    mine.claim("notes", OURS)
    before = redis_client.info("persistence")["rdb_changes_since_last_save"]
    for home in (OURS, THEIRS, msgspec.structs.replace(OURS, host="attic")):
        mine.find_elsewhere(["notes"], home)
    assert redis_client.info("persistence")["rdb_changes_since_last_save"] == before


def test_a_home_is_claimed_in_a_full_redis(make_redis, make_settings):
    """G10: workers start, hence drain, also when Redis is out of memory."""
    server = make_redis(maxmemory="2mb", maxmemory_policy="noeviction")
    client = server.client()
    with pytest.raises(redis.ResponseError, match="maxmemory"):
        _fill(client)
    mine = homes(client, make_settings(url=server.url))
    assert mine.claim("notes", OURS) == OURS
    mine.move("notes", THEIRS)
    assert mine.claim("notes", OURS) == THEIRS


def _fill(client: redis.Redis) -> None:
    for number in range(4096):
        client.set(f"t:{number}", b"x" * 4096, ex=600)


def test_without_redis_and_with_foreign_entries(make_redis, make_settings):
    """G10: an entry or a key that is not ours is named with its remedy; so is an absent Redis."""
    server = make_redis()
    settings = make_settings(url=server.url)
    client, mine = server.client(), homes(server.client(), settings)
    client.hset(Keys(settings.namespace).homes, "notes", b"\xffjunk")
    assert mine.all() == {}
    for ask in (mine.claim, lambda name, home: mine.find_elsewhere([name], home)):
        with pytest.raises(ForeignKey, match="memorybus provider move notes"):
            ask("notes", OURS)
    mine.move("notes", OURS)
    assert mine.claim("notes", OURS) == OURS
    client.delete(Keys(settings.namespace).homes)
    client.set(Keys(settings.namespace).homes, "theirs", ex=60)
    with pytest.raises(ForeignKey, match=":homes"):
        mine.claim("notes", OURS)
    client.close()
    server.kill()
    with pytest.raises(LogUnavailable):
        mine.claim("notes", OURS)
