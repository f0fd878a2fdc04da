"""Makes the requests of a recall: messages and conclusions near the question, or the base context.

The base context is the person's card and representation. `account` keeps it for a while, since it
changes slowly, and adds what `dialectic` has found out.
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
from memorybus_providers.honcho import messages
from memorybus_providers.honcho.tenant import Tenant

T = TypeVar("T")

RequestRecollections = Callable[[], Sequence[Recollection]]
"""Sends one request of a recall and returns what it found."""


class BaseContext(msgspec.Struct, frozen=True):
    """The base context of a person: card and representation, each as lines."""

    card: tuple[str, ...] = ()
    representation: tuple[str, ...] = ()


def fetch_base(holder: Peer, about: Peer, near: str = "") -> BaseContext:
    """Fetch what one peer knows of another; what is near the text `near` comes first."""
    found = fetch_or_empty(lambda: [holder.context(target=about, search_query=near or None)])
    return _base_from_response(found[0]) if found else BaseContext()


def fetch_card(holder: Peer, about: Peer) -> Sequence[str]:
    """Fetch the card that one peer keeps of another."""
    return fetch_or_empty(lambda: holder.get_card(target=about) or [])


def search_messages(tenant: Tenant, question: str, results: int) -> list[Recollection]:
    """Return messages near a question, best first, without those that were retracted."""
    found = (
        fetch_or_empty(lambda: tenant.honcho.search(question, limit=results)) if question else ()
    )
    return [message_recollection(one, tenant) for one in found if is_recallable(one)]


def recall_requests(tenant: Tenant, question: str, results: int) -> list[RequestRecollections]:
    """Return the requests of a recall, which may run at the same time."""
    return [
        lambda: _search_conclusions(tenant, "user", "conclusions", question, results),
        lambda: _search_conclusions(tenant, "memory", "notes", question, results),
        lambda: search_messages(tenant, question, results),
    ]


def merge_by_place(lists: Iterable[Sequence[Recollection]]) -> list[Recollection]:
    """Return what several requests found, each text once, scored by its best place in a list."""
    ranked = [
        msgspec.structs.replace(recollection, score=1 / place)
        for recollections in lists
        for place, recollection in enumerate(recollections, 1)
    ]
    once: dict[str, Recollection] = {}
    for recollection in sorted(ranked, key=lambda recollection: -recollection.score):
        once.setdefault(recollection.text, recollection)
    return list(once.values())


def base_recollections(base: BaseContext) -> list[Recollection]:
    """Return the base context as recollections."""
    return [
        *(Recollection(line, source="card", score=1.0) for line in base.card),
        *(Recollection(line, source="representation", score=0.5) for line in base.representation),
    ]


def _search_conclusions(
    tenant: Tenant, store: StoreName, source: str, question: str, results: int
) -> list[Recollection]:
    view = tenant.conclusions_of(store)
    found = fetch_or_empty(lambda: view.query(question, top_k=results))
    return [_from_conclusion(one, source) for one in found]


def fetch_or_empty(fetch: Callable[[], Sequence[T]]) -> Sequence[T]:
    """Return the answer of a request, or nothing if its peer has never spoken (404)."""
    try:
        return fetch()
    except NotFoundError:
        return ()


def _base_from_response(response: PeerContextResponse) -> BaseContext:
    lines = [line.strip() for line in (response.representation or "").splitlines()]
    return BaseContext(
        tuple(filter(None, response.peer_card or ())),
        tuple(line for line in lines if line and not line.startswith("#")),
    )


def is_recallable(message: Message) -> bool:
    """Return whether a message was said in a conversation and has not been retracted."""
    return message.session_id != messages.NOTES and not message.metadata.get("retracted")


def message_recollection(message: Message, tenant: Tenant) -> Recollection:
    """Return a message with its session, time, speaker and event."""
    owner = tenant.owner
    return Recollection(
        message.content,
        session=str(message.metadata.get("session") or message.session_id),
        at=round(message.created_at.timestamp() * 1_000),
        speaker=owner.user if message.peer_id == tenant.person.id else owner.agent,
        source="messages",
        event=str(message.metadata.get("event_id") or ""),
    )


def _from_conclusion(conclusion: Conclusion, source: str) -> Recollection:
    at = round(conclusion.created_at.timestamp() * 1_000)
    return Recollection(conclusion.content, at=at, source=source)
