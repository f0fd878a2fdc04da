"""The verdict over a run: pure, from the writer's receipts and the sink's log of effects.

An event counts as accepted once its line is in the writer's fsynced journal; as applied once per
row of a sink's log, which has no unique constraint. An event that the writer was killed over may
be applied without a receipt.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

import msgspec


class Receipt(msgspec.Struct, frozen=True):
    """A line of the journal: an accepted event, its session, place in it, and level (G1)."""

    event_id: str
    session: str
    ordinal: int
    level: str = "spooled"


class Effect(msgspec.Struct, frozen=True):
    """A row of a sink's log, in the order of application within its lane.

    Attributes:
        event_id: what was applied.
        key: the order key: the session's root.
        ordinal: the event's place in its session, as its writer counted.
        lane: which partition.
        n: its dense number there.
        epoch: under which its process owned the lane when the provider was called; 0 if unknown.
        pid: the process that applied it.
        at: when, milliseconds of wall time.
        said: when the event was published.
    """

    event_id: str
    key: str
    ordinal: int
    lane: int = 0
    n: int = 0
    epoch: int = 0
    pid: int = 0
    at: int = 0
    said: int = 0


class Verdict(msgspec.Struct, frozen=True):
    """What a run did to its events.

    Attributes:
        accepted: how many receipts there are.
        applied: how many events were applied, repeats apart.
        parked: how many of the accepted are dead letters.
        lost: accepted, but neither applied nor parked nor spooled (G1).
        twice: by event, how often it was applied too often (G4).
        disordered: sessions in which an event came before an earlier one (G3).
        stale: effects of an owner after those of its successor (G5).
        unpromised: how many were applied without a receipt.
    """

    accepted: int
    applied: int
    parked: int
    lost: tuple[str, ...]
    twice: dict[str, int]
    disordered: tuple[str, ...]
    stale: int
    unpromised: int

    @property
    def repeats(self) -> int:
        """How many effects there were too many."""
        return sum(self.twice.values())

    def faults(
        self, *, may_repeat: int = 0, may_exceed: int = 0, may_be_stale: int = 0
    ) -> list[str]:
        """Return what is wrong, in words; nothing if the run holds.

        Args:
            may_repeat: so many effects may have come again (class ``blind``: one per kill).
            may_exceed: so many events may be applied without a receipt (one per killed writer's
                group).
            may_be_stale: so many effects may come after those of the next owner: the calls that
                were under way when their worker was stopped or cut off (G5).
        """
        found = [
            (self.accepted == 0, "nothing was accepted"),
            (bool(self.lost), f"{len(self.lost)} lost: {self.lost[:3]}"),
            (
                self.repeats > may_repeat,
                f"{self.repeats} effects too many ({may_repeat} allowed): {_few(self.twice)}",
            ),
            (bool(self.disordered), f"out of order: {self.disordered[:3]}"),
            (
                self.stale > may_be_stale,
                f"{self.stale} effects of a stale owner ({may_be_stale} allowed)",
            ),
            (
                self.unpromised > may_exceed,
                f"{self.unpromised} applied without a receipt ({may_exceed} allowed)",
            ),
        ]
        return [text for wrong, text in found if wrong]


def judge(
    receipts: Iterable[Receipt],
    effects: Sequence[Effect],
    *,
    parked: Collection[str] = (),
    spooled: Collection[str] = (),
) -> Verdict:
    """Compare what was accepted with what became of it.

    Args:
        receipts: the journal.
        effects: the sink's log, in order within each lane.
        parked: ids in dead letters.
        spooled: ids that still lie in a spool, and Redis does not have.
    """
    accepted = {receipt.event_id for receipt in receipts}
    counts = Counter(effect.event_id for effect in effects)
    known = set(parked) | set(spooled)
    return Verdict(
        accepted=len(accepted),
        applied=len(counts),
        parked=len(accepted & set(parked)),
        lost=tuple(sorted(accepted - counts.keys() - known)),
        twice={event_id: count - 1 for event_id, count in counts.items() if count > 1},
        disordered=tuple(_disordered(effects)),
        stale=_stale(effects),
        unpromised=len(counts.keys() - accepted),
    )


def _disordered(effects: Sequence[Effect]) -> list[str]:
    """Return the sessions whose events, repeats apart, did not come in their order."""
    seen: set[str] = set()
    last: dict[str, int] = defaultdict(lambda: -1)
    wrong: set[str] = set()
    for effect in effects:
        if effect.event_id not in seen:
            seen.add(effect.event_id)
            if effect.ordinal <= last[effect.key]:
                wrong.add(effect.key)
            last[effect.key] = max(last[effect.key], effect.ordinal)
    return sorted(wrong)


def _stale(effects: Sequence[Effect]) -> int:
    """Count effects under an epoch below one that the lane had seen before."""
    newest: dict[int, int] = defaultdict(int)
    count = 0
    for effect in effects:
        count += effect.epoch < newest[effect.lane]
        newest[effect.lane] = max(newest[effect.lane], effect.epoch)
    return count


def _few(twice: dict[str, int]) -> dict[str, int]:
    return dict(list(twice.items())[:3])


def latency(effects: Iterable[Effect], share: float) -> float:
    """Return the seconds from publishing to effect that a share of the events stayed below.

    Raises:
        ValueError: there is no effect.
    """
    waits = sorted(effect.at - effect.said for effect in effects)
    if not waits:
        raise ValueError("no effect to measure")
    return waits[min(len(waits) - 1, int(share * len(waits)))] / 1000
