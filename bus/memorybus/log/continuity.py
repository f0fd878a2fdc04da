"""Whether a partition still has every number that was given, and which it lacks; pure.

Entries are numbered densely, so what is gone can be told by its numbers: before the first entry
(a trimmed or deleted stream), behind the last one, and in the middle by counting. Only what the
archive has sealed may be missing (G7); everything else that is missing is data loss.
"""

from collections.abc import Iterable, Iterator

import msgspec

from memorybus.redis.keys import lane_name

NAMED = 16
"""How many gaps inside one partition are named each; later ones are taken together."""


class Place(msgspec.Struct, frozen=True):
    """An entry of ours: its id and its dense number."""

    entry: str
    n: int


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A partition at one moment.

    Attributes:
        length: entries in the stream, strangers' included.
        n: the last number given; 0 for none.
        sealed: the number up to which the log may be trimmed.
        deleted: the highest id removed by XDEL; "" if none, or the server does not tell.
        first: our first entry; None if none was found.
        last: our last entry.
        before: the last one up to a place asked for.
        after: the first one behind it.
        sealed_at: the entry of the number `sealed`; "" if it is not known.
        unsealed: our first entry behind it.
    """

    length: int = 0
    n: int = 0
    sealed: int = 0
    deleted: str = ""
    first: Place | None = None
    last: Place | None = None
    before: Place | None = None
    after: Place | None = None
    sealed_at: str = ""
    unsealed: Place | None = None


class Gap(msgspec.Struct, frozen=True):
    """Numbers that are gone: `missing` of those from `first` to `last`, both included."""

    partition: int
    first: int
    last: int
    missing: int

    @property
    def told(self) -> str:
        """The gap in words."""
        place = f"partition {lane_name(self.partition)}"
        if self.missing == self.last - self.first + 1:
            return f"{place}: events {self.first} to {self.last} are gone"
        return f"{place}: {self.missing} of the events {self.first} to {self.last} are gone"


class Page(msgspec.Struct, frozen=True):
    """Some entries in a row.

    Attributes:
        upto: where the page ends.
        read: how many entries it had.
        strays: how many of them carry no number.
        breaks: pairs of neighbouring numbers of which the second is not the one after.
    """

    upto: Place
    read: int
    strays: int
    breaks: tuple[tuple[int, int], ...]


class Audit(msgspec.Struct, frozen=True):
    """How far a partition was read entry by entry, and what was found.

    Attributes:
        mark: what it was begun for; another mark means another audit.
        upto: the last place read.
        done: whether that was the end.
        strays: entries of others so far.
        gaps: what is missing so far: first, last, how many.
        restarted: the number after which the numbers began anew; 0 for nowhere.
    """

    mark: tuple[int, str, str]
    upto: Place
    done: bool = False
    strays: int = 0
    gaps: tuple[tuple[int, int, int], ...] = ()
    restarted: int = 0


def slack(view: View) -> int:
    """Return how many numbers lack an entry, less the entries that lack a number."""
    if view.first is None or view.last is None:
        return -view.length
    return view.last.n - view.first.n + 1 - view.length


def needs_audit(view: View, audit: Audit | None) -> bool:
    """Say whether the counts cannot be explained without reading entries."""
    if view.first is None:
        return False
    if audit is not None and audit.mark == _mark(view):
        return not audit.done
    moved = audit is not None and audit.mark[0] != slack(view)
    begin = max(_order(view.first.entry), _order(view.sealed_at))
    return moved or slack(view) != 0 or _order(view.deleted) > begin


def audit_of(view: View, audit: Audit | None) -> Audit:
    """Return the audit to go on with: this one, or a new one from the stream's beginning.

    What the archive has is not read: a new one begins behind it.
    """
    if audit is not None and audit.mark == _mark(view):
        return audit
    if view.first is None or (view.sealed_at and _reaches_into(view)):
        return Audit(_mark(view), Place(view.sealed_at or "0-0", view.sealed))
    return Audit(_mark(view), Place("0-0", view.first.n - 1))


def _reaches_into(view: View) -> bool:
    """Say whether the archive has the stream's first entry too, so that counts mean little."""
    return view.first is not None and view.sealed >= view.first.n


def advanced(audit: Audit, page: Page, asked: int) -> Audit:
    """Return the audit after one more page, of which `asked` entries were asked for."""
    gaps, restarted = audit.gaps, audit.restarted
    for before, after in page.breaks:
        if after > before:
            gaps = _with(gaps, before + 1, after - 1)
        else:
            restarted = restarted or before
    return Audit(
        audit.mark, page.upto, page.read < asked, audit.strays + page.strays, gaps, restarted
    )


def gaps_of(partition: int, view: View, audit: Audit | None = None) -> list[Gap]:
    """Return what is gone from a partition, in order; the sealed part may be.

    A gap inside that was not read yet is given as a range with the count of what it lacks.
    Entries of others cannot hide one that the audit has reached; before, they are counted against
    it. Where the archive has a part of what the stream holds, counts do not tell on which side of
    the seam something is gone: only what was read is given.
    """
    if view.first is None or view.last is None:
        # Strangers in front hide where ours begin: nothing is claimed.
        return [] if view.length else _whole(partition, view.sealed + 1, view.n)
    return [
        *_whole(partition, view.sealed + 1, view.first.n - 1),
        *_inside(partition, view, audit),
        *_whole(partition, view.last.n + 1, view.n),
    ]


def counter_lost(view: View) -> bool:
    """Say whether numbers that have entries will be given again: the counter was lost."""
    return view.last is not None and view.n < view.last.n


def tail_lost(partition: int, view: View, settled: Place) -> Gap | None:
    """Return what the log lost at its end and has numbered anew, or None.

    Args:
        partition: which.
        view: with `before` and `after` of the settled place.
        settled: an entry that was in the log for so long that its producer may have forgotten it.
    """
    survivor = max(view.before.n if view.before else 0, view.sealed)
    renumbered = view.n < settled.n or (view.after is not None and view.after.n <= settled.n)
    if survivor >= settled.n or not renumbered:
        return None
    return Gap(partition, survivor + 1, settled.n, settled.n - survivor)


def _inside(partition: int, view: View, audit: Audit | None) -> list[Gap]:
    """Return the gaps between the first and the last entry."""
    if view.first is None or view.last is None:
        return []
    partly = _reaches_into(view)
    if audit is None or audit.mark != _mark(view):
        found = _counted(partition, view.first.n + 1, view.last.n - 1, slack(view))
        return [] if partly else found
    named = [*_behind(view.sealed, (Gap(partition, *gap) for gap in audit.gaps))]
    if audit.done or audit.restarted or partly:
        return named
    left = slack(view) + audit.strays - sum(gap.missing for gap in named)
    return [*named, *_counted(partition, audit.upto.n + 1, view.last.n - 1, left)]


def _behind(sealed: int, gaps: Iterable[Gap]) -> Iterator[Gap]:
    """Yield what of some gaps lies behind what is sealed."""
    for gap in gaps:
        if gap.last > sealed:
            first = max(gap.first, sealed + 1)
            yield Gap(gap.partition, first, gap.last, min(gap.missing, gap.last - first + 1))


def only_archived(partition: int, view: View) -> Gap | None:
    """Return the numbers that only the archive has, since Redis lost its tail; None if none."""
    if view.n >= view.sealed:
        return None
    return Gap(partition, view.n + 1, view.sealed, view.sealed - view.n)


def lacking(partition: int, sealed: int, end: Place | None, first: Place | None) -> Gap | None:
    """Return what was sealed, and neither the archive nor the log has any more; None if nothing.

    An archive without anything is never begun anew where something was sealed: its disk may not be
    mounted.

    Args:
        partition: which.
        sealed: the number up to which the partition was sealed, as Redis remembers.
        end: where the archive ends.
        first: our first entry in the log.
    """
    held = end.n if end else 0
    if sealed <= held:
        return None
    if end is not None and first is not None and first.n <= held + 1:
        return None  # the archive is an older one; the log still has all that followed
    last = min(sealed, first.n - 1) if first is not None and first.n > held + 1 else sealed
    return Gap(partition, held + 1, last, last - held)


def _whole(partition: int, first: int, last: int) -> list[Gap]:
    return [Gap(partition, first, last, last - first + 1)] if first <= last else []


def _counted(partition: int, first: int, last: int, missing: int) -> list[Gap]:
    return [Gap(partition, first, last, missing)] if missing > 0 else []


def _with(
    gaps: tuple[tuple[int, int, int], ...], first: int, last: int
) -> tuple[tuple[int, int, int], ...]:
    """Add a gap; past the bound it is taken together with the one before."""
    if len(gaps) < NAMED:
        return (*gaps, (first, last, last - first + 1))
    begin, _, missing = gaps[-1]
    return (*gaps[:-1], (begin, last, missing + last - first + 1))


def _mark(view: View) -> tuple[int, str, str]:
    return (slack(view), view.deleted, view.first.entry if view.first else "")


def _order(entry: str) -> tuple[int, int]:
    """Return an entry id as it is ordered; "" comes before all."""
    ms, _, rest = entry.partition("-")
    return (int(ms or 0), int(rest or 0))
