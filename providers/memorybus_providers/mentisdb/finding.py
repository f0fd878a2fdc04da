"""What a recall asks, and which of the answers still count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memorybus_providers.adapters.owners import MOST
from memorybus_providers.base import RecallScope, Recollection
from memorybus_providers.mentisdb import chains, thoughts
from memorybus_providers.mentisdb.thoughts import Thought
from memorybus_providers.remote.texts import parse_milliseconds, sendable

if TYPE_CHECKING:
    from memorybus_providers.mentisdb.store import Store

LONGEST_QUESTION = 2_000
"""Characters of a question that are sent."""


def near(store: Store, scope: RecallScope, query: str, most: int) -> list[Recollection]:
    """Return thoughts near a question, best first; without one the newest entries.

    Args:
        store: the chains.
        scope: whose; of everyone's those of `MOST` owners.
        query: the question.
        most: how many of each owner.
    """
    text = sendable(query).strip()[:LONGEST_QUESTION].strip()
    owners = dict.fromkeys(map(chains.owners_chain, store.listed(scope)))
    find = _ranked if text else _newest
    found = [find(store, own, text, most) for own in list(owners)[:MOST]]
    return sorted((one for some in found for one in some), key=lambda one: -one.score)


def _ranked(store: Store, own: str, text: str, most: int) -> list[Recollection]:
    """Return what an owner's chain and its branches hold near a text."""
    ledgers = store.ledgers(own)
    hits = store.near(list(ledgers), text, 2 * most + 10)  # some do not count any more
    counting = [one for one in hits if ledgers.get(one.chain_key, ledgers[own]).counts(one.thought)]
    return [_recollection(one.thought, one.score.total) for one in counting[:most]]


def _newest(store: Store, own: str, _: str, most: int) -> list[Recollection]:
    """Return the newest entries of the stores."""
    entries = store.search(own, [thoughts.store_tag(name) for name in ("user", "memory")])
    newest = store.ledger(own).standing(entries)[-most:]
    return [_recollection(one, 0.0) for one in reversed(newest)]


def _recollection(thought: Thought, score: float) -> Recollection:
    return Recollection(
        thought.content,
        session=thought.tag("session"),
        at=parse_milliseconds(thought.tag("at")),
        score=score,
        source=thought.thought_type,
        event=thought.tag("event"),
    )
