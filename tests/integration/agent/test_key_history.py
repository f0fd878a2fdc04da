"""What stands under an order key is read back: what is new, from log and archive, of one owner."""

from collections.abc import Callable

from helpers.stories.world import World
from memorybus import KeyHistory, MemoryBus, Session
from memorybus.events import TurnCompleted

QUICK = {"partitions": 2, "seal_after": 0.0, "segment_age": 0.0, "hot_window": 0.0}


def history_of(bus: MemoryBus, session: Session) -> KeyHistory:
    """Return the turns of a session's lineage."""
    return KeyHistory(bus, session.key, session.scope, ("TurnCompleted",))


def words(history: KeyHistory) -> list[str]:
    """Return what the person said in the turns that stand."""
    events = [envelope.event for envelope in history.events()]
    return [event.user for event in events if isinstance(event, TurnCompleted)]


def test_it_is_read_on_without_what_was_undone(make_world: Callable[..., World]):
    """Each read adds what is new, of this key and owner alone, and leaves out what was undone."""
    with make_world(partitions=1).bus() as bus:
        ann, bob = (bus.session("s", user=user, warm=False) for user in ("ann", "bob"))
        history = history_of(bus, ann)
        assert words(history) == []
        receipt = ann.turn_completed("one", "ok")
        bob.turn_completed("other", "ok")
        assert words(history) == ["one"]
        ann.turn_completed("two", "ok")
        assert words(history) == ["one", "two"]
        ann.undo(receipt)
        assert words(history) == words(history_of(bus, ann)) == ["two"]


def test_what_is_archived_is_read_and_what_is_forgotten_is_not(make_world: Callable[..., World]):
    """Sealed events are read from the archive; those of a person who was forgotten are gone."""
    world = make_world(providers=("holographic",), **QUICK)
    world.worker(jobs=1)
    with world.bus() as bus:
        ann, bob = (bus.session(f"s-{user}", user=user, warm=False) for user in ("ann", "bob"))
        histories = [history_of(bus, session) for session in (ann, bob)]
        for session in (ann, bob):
            session.turn_completed(f"of {session.scope.user}", "ok")
        assert bus.flush("logged", 20)
        world.wait_applied()
        world.result("archive", "run")
        read = [words(history) for history in (*histories, history_of(bus, bob))]
        assert read == [["of ann"], ["of bob"], ["of bob"]]
        world.result("forget", "--user", "ann", "--yes", "--reason", "she asked")
        assert [words(history) for history in histories] == [[], ["of bob"]]
