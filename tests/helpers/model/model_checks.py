"""What must hold in a model run at any moment, and what at its end, of one provider instance."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from memorybus.dead_letters.records import DeadLetter
from memorybus.events import Scope
from memorybus.log.entry import LoggedEvent
from memorybus.redis.keys import session_key
from memorybus.registry.lanes import decode_done_above

from helpers.model.model_backend import Backend
from helpers.model.model_world import PARTITIONS, Said, World

EXPLAINED = {
    "it is refused for good": "permanent",
    "try again": "transient",
}
"""Reasons of dead letters, and how the event's text must begin then."""

ENDED = "it ended its worker"
BEHIND = "waits behind"


class Checks:
    """The checks of one instance.

    Args:
        world: where it is.
        backend: what it filled.
        instance: its name.
        kind: see `helpers.model.model_backend.KINDS`.
    """

    def __init__(self, world: World, backend: Backend, instance: str, kind: str) -> None:
        self._world = world
        self._backend = backend
        self._instance = instance
        self._kind = kind
        self._owners: dict[tuple[int, int], str] = {}
        self._newest = dict.fromkeys(range(PARTITIONS), 0)
        self._recorded: dict[str, int] = {}
        self._tails_lost = 0

    # -- at any moment ----------------------------------------------------------------------------

    def now(self, deaths: int) -> None:
        """Check all that must hold between two steps of anybody."""
        if self._tails_lost != self._world.tails_lost:  # what was recorded may be lost with it
            self._tails_lost = self._world.tails_lost
            self._recorded.clear()
        letters = self.letters()
        settled = {kept.event_id for kept in self._backend.effects} | {
            letter.event_id for letter in letters
        }
        for partition in range(PARTITIONS):
            events = self._events(partition)
            self._log_is_whole(partition, events)
            self._checkpoint_is_true(partition, events, settled)
            self._lease_is_the_lanes(partition)
        self._order_is_kept()
        self._nothing_twice(deaths)
        self._letters_are_explained(letters, deaths)

    def _log_is_whole(self, partition: int, events: Sequence[LoggedEvent]) -> None:
        """G2: every event is in it once, under consecutive numbers; G3: keys are in order."""
        numbers = [event.position.n for event in events]
        first = self._world.trimmed[partition] + 1
        assert numbers == list(range(first, first + len(numbers))), "numbers are not dense"
        ids = [event.envelope.id for event in events]
        assert len(set(ids)) == len(ids), "an event is in the log twice"
        for key, said in self._world.said.items():
            mine = [e.envelope.id for e in events if e.envelope.session.root == key]
            assert _is_run(mine, [one.id for one in said]), f"the log has {key} out of order"

    def _checkpoint_is_true(
        self, partition: int, events: Sequence[LoggedEvent], settled: set[str]
    ) -> None:
        """What the checkpoint passes, and what the done-set says, is applied or put aside."""
        lane = self.lane(partition)
        n = int(lane.get(b"n", 0))
        done = decode_done_above(lane.get(b"done", b""), n)
        for event in events:
            m = event.position.n
            if m <= n or done >> (m - n - 1) & 1:
                assert event.envelope.id in settled, (
                    f"partition {partition}: {m} is passed by {n}, {done:b}, and is not done"
                )
                self._is_not_called_again(event.envelope.id)

    def _is_not_called_again(self, event_id: str) -> None:
        """G4: what the checkpoint or its done-set says is done is never handed over again.

        A transaction may repeat the call, and does not commit then.
        """
        if self._kind == "transactional":
            return
        tries = self._backend.tries[event_id]
        assert self._recorded.setdefault(event_id, tries) == tries, "it was known to be done"

    def _lease_is_the_lanes(self, partition: int) -> None:
        """G5: a lease carries its lane's epoch, and an epoch has one owner, for ever."""
        world = self._world
        given = int(self.lane(partition).get(b"epoch", 0))
        self._newest[partition] = max(self._newest[partition], given)
        lease: Any = world.redis.get(world.keys.lease(partition, self._instance))
        if lease is None:
            return
        epoch, _, owner = lease.decode().partition(":")
        assert int(epoch) == int(self.lane(partition)[b"epoch"]), "the lease is not the lane's"
        known = self._owners.setdefault((partition, int(epoch)), owner)
        assert known == owner, f"epoch {epoch} was {known}'s and is {owner}'s"

    def had_heir(self, partition: int, epoch: int) -> bool:
        """Say whether a lane was given to another after this epoch, though Redis may not know."""
        return self._newest[partition] > epoch

    def _order_is_kept(self) -> None:
        """G3: the first effects of a key come in the order in which it was published."""
        for key, said in self._expected().items():
            done = list(dict.fromkeys(k.event_id for k in self._backend.effects if k.key == key))
            wanted = [one.id for one in said]
            assert done == wanted[: len(done)], f"effects of {key} are out of order"

    def _nothing_twice(self, deaths: int) -> None:
        """G4: by class."""
        counts = Counter(kept.event_id for kept in self._backend.effects)
        more = sum(count - 1 for count in counts.values())
        if self._kind == "blind":
            assert self._world.tails_lost or more <= deaths, "more repeats than deaths"
        else:
            assert not more, f"effects happened twice: {self._kind}"

    def _letters_are_explained(self, letters: Sequence[DeadLetter], deaths: int) -> None:
        """G6: nothing is put aside without a reason that is true."""
        fates = {one.id: one.fate for said in self._world.said.values() for one in said}
        waiting: set[str] = set()
        for letter in letters:
            wanted = EXPLAINED.get(letter.reason)
            if letter.reason.startswith(BEHIND):
                assert letter.key in waiting, "it waits behind nothing"
            elif letter.reason.startswith(ENDED):
                assert deaths >= letter.attempts, "nobody died of it"
            else:
                assert wanted is not None, f"nobody said {letter.reason!r}"
                assert fates[letter.event_id].startswith(wanted), letter.reason
            waiting.add(letter.key)

    # -- at the end -------------------------------------------------------------------------------

    def complete(self) -> None:
        """Nothing is lost: all is applied or put aside, and nothing is both (G1, G6)."""
        letters = self.letters()
        dead = {letter.event_id for letter in letters}
        doubtful = {letter.key for letter in letters if letter.reason.startswith(ENDED)}
        applied = {kept.event_id for kept in self._backend.effects}
        for key, said in self._expected().items():
            ids = {one.id for one in said}
            assert ids <= applied | dead, f"{len(ids - applied - dead)} events of {key} are lost"
            if session_key(Scope(), key) not in doubtful:
                assert not ids & applied & dead, f"events of {key} are applied and put aside"
            self._blocks_behind(key, [one.id for one in said], dead)

    def _blocks_behind(self, key: str, ids: Sequence[str], dead: set[str]) -> None:
        """G6: what comes after a key's first dead letter waits behind it."""
        first = next((i for i, event_id in enumerate(ids) if event_id in dead), len(ids))
        assert set(ids[first:]) <= dead, f"{key} did not wait behind its dead letter"

    def _expected(self) -> dict[str, list[Said]]:
        return dict(self._world.said)

    # -- what is there ----------------------------------------------------------------------------

    def is_done(self) -> bool:
        """Whether every lane stands at its partition's head."""
        keys, client = self._world.keys, self._world.redis
        return all(
            int(self.lane(p).get(b"n", 0)) >= int(client.hget(keys.state(p), "n") or 0)
            for p in range(PARTITIONS)
        )

    def lane(self, partition: int) -> dict[bytes, bytes]:
        """Return a lane's hash."""
        found: Any = self._world.redis.hgetall(self._world.keys.lane(partition, self._instance))
        return dict(found)

    def letters(self) -> list[DeadLetter]:
        """Return all dead letters, by partition and in order."""
        client, keys = self._world.redis, self._world.keys
        found: list[Any] = []
        for partition in range(PARTITIONS):
            found += client.xrange(keys.dead(partition, self._instance))
        return [msgspec.json.decode(fields[b"r"], type=DeadLetter) for _, fields in found]

    def written(self, partition: int) -> tuple[Any, ...]:
        """Return all that an owner of a lane may write, but for time stamps."""
        client, keys = self._world.redis, self._world.keys
        return (
            self.lane(partition),
            client.get(keys.lease(partition, self._instance)),
            client.hgetall(keys.parked(partition, self._instance)),
            client.xlen(keys.dead(partition, self._instance)),
            self._backend.lanes.get(f"p{partition:02d}"),
            [kept for kept in self._backend.effects if kept.partition == partition],
        )

    def _events(self, partition: int) -> list[LoggedEvent]:
        return self._world.log.read(partition, count=100_000)


def _is_run(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether `part` stands in `whole` as it is, without a gap."""
    if not part:
        return True
    begin = whole.index(part[0]) if part[0] in whole else -1
    return begin >= 0 and list(whole[begin : begin + len(part)]) == list(part)
