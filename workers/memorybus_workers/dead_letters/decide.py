"""One pass through a lane's dead letters: decides what to do with each, without any I/O."""

from collections import Counter
from collections.abc import Sequence

import msgspec
from memorybus.dead_letters.records import (
    START,
    Amendment,
    DeadLetter,
    LetterRequest,
    StoredLetter,
    edit_event,
)
from memorybus.events import DeadLetterResolved, Envelope, SessionRef
from memorybus.ids import derived_id
from memorybus.log.entry import LoggedEvent

from memorybus_workers.lanes.parking import Failure


class LetterAction(msgspec.Struct, frozen=True):
    """What to do with one letter: discard it, put an edited event in its place, apply it."""

    discard: LetterRequest | None = None  # the request to discard it
    edit: LetterRequest | None = None  # the request with an edited event
    apply: bool = False  # whether its turn has come


LEAVE = LetterAction()


class Pass:
    """One pass through a lane's dead letters, for the requests that waited at its beginning."""

    def __init__(self, epoch: int, requests: Sequence[LetterRequest], worker: str = "") -> None:
        self.epoch = epoch  # the epoch under which the lane is owned
        self.fields = [request.field for request in requests]  # the requests' fields in the hash
        self.cursor = START  # the id of the last letter that was handled
        self.not_before = 0.0  # the monotonic time before which the pass does not continue
        self.counts: Counter[str] = Counter()  # how often each thing was done, for people
        self._waiting: set[str] = set()
        self._early: set[str] = set()
        self._resume: str | None = None
        self._worker = worker
        self._tried: set[str] = set()
        self._ids = {request.id for request in requests}
        self._drained = {key: request.id for request in requests for key in request.keys}
        self._named = {entry: request for request in requests for entry in request.entries}
        self._causes = dict(self._drained)

    def decide(self, letter: DeadLetter) -> LetterAction:
        """Decide what to do with the next letter; a second call for it decides the same."""
        if letter.key in self._early:
            return LEAVE
        request = self._named.get(letter.entry)
        if request is not None:
            self._causes[letter.key] = max(request.id, self._causes.get(letter.key, ""))
        if request is not None and request.action == "discard":
            return LetterAction(discard=request)
        # A letter that was never tried is applied once the first letter of its key is settled.
        wanted = request is not None or letter.key in self._drained or not letter.refused
        turn = wanted and letter.key not in self._waiting
        if not turn:
            self.note_left(letter)
        return LetterAction(edit=request, apply=turn) if request or turn else LEAVE

    def note_left(self, letter: DeadLetter) -> None:
        """Note that a letter stays: the later ones of its key wait behind it."""
        self._waiting.add(letter.key)

    # -- letters that the checkpoint has not passed -----------------------------------------------

    def postpone(self, letter: DeadLetter) -> None:
        """Note that it is too early for a letter: it and those of its key follow after a rewind."""
        self._early.add(letter.key)
        if self._resume is None:
            self._resume = self.cursor

    def rewind(self) -> bool:
        """Go back to the first letter that was postponed; return whether there was one."""
        if self._resume is None:
            return False
        self.cursor, self._resume = self._resume, None
        self._early.clear()
        return True

    # -- letters that end their worker ------------------------------------------------------------

    def is_deadly(self, stored: StoredLetter) -> bool:
        """Return whether another worker died while it applied a letter for the same requests.

        A try of our own does not count: we may have lost the lane in between, without dying. A
        newer request about its key lets the letter be tried once more.
        """
        amendment = stored.amendment or Amendment()
        others = amendment.trying in self._ids and amendment.by != self._worker
        return others and self._causes.get(stored.letter.key, "") <= amendment.trying

    def begin_try(self, stored: StoredLetter) -> Amendment:
        """Return the amendment that says for which request a letter is about to be applied."""
        self._tried.add(stored.id)
        cause = self._causes.get(stored.letter.key) or max(self._ids)
        amendment = stored.amendment or Amendment()
        return msgspec.structs.replace(amendment, trying=cause, by=self._worker)

    def end_try(self, stored: StoredLetter) -> bool:
        """Note that a try is over and may be repeated; return whether it had been noted."""
        noted = stored.id in self._tried
        self._tried.discard(stored.id)
        return noted


def take_disjoint(requests: Sequence[LetterRequest]) -> list[LetterRequest]:
    """Return the requests before the first one that names a letter of an earlier request."""
    named: set[str] = set()
    disjoint = list[LetterRequest]()
    for request in requests:
        if not named.isdisjoint(request.entries):
            break
        named.update(request.entries)
        disjoint.append(request)
    return disjoint


def with_edit(stored: StoredLetter, request: LetterRequest) -> StoredLetter:
    """Return a letter with a request's edited event; the same letter if it has that already."""
    amendment = stored.amendment or Amendment()
    if amendment.request == request.id:
        return stored  # an owner that died has edited it
    new = msgspec.structs.replace(amendment, edited=request.event, request=request.id)
    return msgspec.structs.replace(stored, amendment=new, strange=False)


def apply_edit(event: LoggedEvent, amendment: Amendment | None) -> LoggedEvent:
    if amendment is None or amendment.edited is None:
        return event
    new = edit_event(event.envelope.event, amendment.edited)
    envelope = msgspec.structs.replace(event.envelope, event=new, v=new.version)
    return msgspec.structs.replace(event, envelope=envelope)


def amendment_for_refusal(stored: StoredLetter, failure: Failure) -> Amendment:
    letter, amendment = stored.letter, stored.amendment or Amendment()
    return msgspec.structs.replace(
        amendment,
        reason=failure.reason,
        attempts=letter.attempts + max(1, failure.attempts),
        first_at=letter.first_at or failure.first_at,
        last_at=failure.last_at,
        trace=failure.trace,
        trying="",
        by="",
    )


def build_resolution(
    provider: str, request: LetterRequest, letter: DeadLetter, event: LoggedEvent | None
) -> Envelope:
    session = SessionRef(letter.session, letter.session)
    return Envelope(
        id=derived_id("dead letter", provider, request.id, letter.entry),
        key=letter.key,
        scope=event.envelope.scope if event else letter.scope,
        session=event.envelope.session if event else session,
        at=request.at,
        event=DeadLetterResolved(
            provider=provider,
            event_id=letter.event_id,
            action="edit" if request.action == "edit" else "discard",
            reason=request.reason,
            operator=request.operator,
            replacement=request.event,
        ),
    )
