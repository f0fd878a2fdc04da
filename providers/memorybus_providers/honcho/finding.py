"""What a recall asks: what was said and what is held, near the question; or the base context.

Two tiers: the base context (the person's card and representation) is kept for a while, since it
changes slowly; what `dialectic` has found out stands beside what each question finds.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec
from honcho import Peer
from honcho.api_types import PeerContextResponse
from honcho.conclusions import Conclusion
from honcho.http.exceptions import NotFoundError
from honcho.message import Message
from memorybus.events import StoreName

from memorybus_providers.base import Recollection
from memorybus_providers.honcho import places
from memorybus_providers.honcho.tenant import Tenant
from memorybus_providers.remote.texts import sendable

T = TypeVar("T")

Ask = Callable[[], Sequence[Recollection]]
"""One request of a recall."""

LONGEST_QUESTION = 2_000
"""Characters of a question that are sent; Honcho makes one vector of it."""


class Base(msgspec.Struct, frozen=True):
    """The base context of a person: card and representation, each as lines."""

    card: tuple[str, ...] = ()
    representation: tuple[str, ...] = ()


def question(query: str) -> str:
    """Return a query as Honcho takes it; "" if it asks nothing."""
    return sendable(query).strip()[:LONGEST_QUESTION].strip()


def base_of(holder: Peer, about: Peer, near: str = "") -> Base:
    """Ask for the base context: what one peer holds of another, of what is near a text first."""
    found = if_there(lambda: [holder.context(target=about, search_query=near or None)])
    return _as_base(found[0]) if found else Base()


def card_of(holder: Peer, about: Peer) -> Sequence[str]:
    """Ask for the card that one peer keeps of another."""
    return if_there(lambda: holder.get_card(target=about) or [])


def said(tenant: Tenant, asked: str, results: int) -> list[Recollection]:
    """Ask for messages near a question, best first; none that was taken back."""
    found = if_there(lambda: tenant.honcho.search(asked, limit=results)) if asked else ()
    return [_said(one, tenant) for one in found if counts(one)]


def asks(tenant: Tenant, asked: str, results: int) -> list[Ask]:
    """Return the requests of a recall, which do not wait for each other."""
    return [
        lambda: [_held(one, "conclusions") for one in _about(tenant, "user", asked, results)],
        lambda: [_held(one, "notes") for one in _about(tenant, "memory", asked, results)],
        lambda: said(tenant, asked, results),
    ]


def merged(lists: Iterable[Sequence[Recollection]]) -> list[Recollection]:
    """Return what several requests found, by its place in each, each text once."""
    ranked = [
        msgspec.structs.replace(one, score=1 / place)
        for found in lists
        for place, one in enumerate(found, 1)
    ]
    once: dict[str, Recollection] = {}
    for one in sorted(ranked, key=lambda one: -one.score):
        once.setdefault(one.text, one)
    return list(once.values())


def lines_of(base: Base) -> list[Recollection]:
    """Return the base context as recollections."""
    return [
        *(Recollection(line, source="card", score=1.0) for line in base.card),
        *(Recollection(line, source="representation", score=0.5) for line in base.representation),
    ]


def _about(tenant: Tenant, store: StoreName, asked: str, results: int) -> Sequence[Conclusion]:
    view = tenant.held(store)
    return if_there(lambda: view.query(asked, top_k=results))


def if_there(ask: Callable[[], Sequence[T]]) -> Sequence[T]:
    """Return an answer; nothing of a peer that has never spoken."""
    try:
        return ask()
    except NotFoundError:
        return ()


def _as_base(found: PeerContextResponse) -> Base:
    lines = [line.strip() for line in (found.representation or "").splitlines()]
    return Base(
        tuple(filter(None, found.peer_card or ())),
        tuple(line for line in lines if line and not line.startswith("#")),
    )


def counts(message: Message) -> bool:
    """Say whether a message is one that was said, and not taken back."""
    return message.session_id != places.NOTES and not message.metadata.get("retracted")


def _said(message: Message, tenant: Tenant) -> Recollection:
    owner = tenant.owner
    return Recollection(
        message.content,
        session=str(message.metadata.get("session") or message.session_id),
        at=round(message.created_at.timestamp() * 1_000),
        speaker=owner.user if message.peer_id == tenant.person.id else owner.agent,
        source="messages",
        event=str(message.metadata.get("event_id") or ""),
    )


def _held(conclusion: Conclusion, source: str) -> Recollection:
    at = round(conclusion.created_at.timestamp() * 1_000)
    return Recollection(conclusion.content, at=at, source=source)
