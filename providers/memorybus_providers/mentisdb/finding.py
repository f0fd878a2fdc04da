"""Makes the requests of a recall, and leaves out thoughts that are no longer valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memorybus_providers.base import RecallScope, Recollection
from memorybus_providers.mentisdb import chains, thoughts
from memorybus_providers.mentisdb.thoughts import Thought
from memorybus_providers.owners import MAX_OWNERS
from memorybus_providers.remote.texts import clean_question, parse_milliseconds

if TYPE_CHECKING:
    from memorybus_providers.mentisdb.store import MentisStore


def find_near(store: MentisStore, scope: RecallScope, query: str, most: int) -> list[Recollection]:
    """Return thoughts near a question, best first; without a question, the newest entries.

    Args:
        store: the chains.
        scope: the owners; at most `MAX_OWNERS` of them are searched.
        query: the question.
        most: the most thoughts of each owner.
    """
    question = clean_question(query)
    owners = dict.fromkeys(map(chains.owners_chain, store.list_chains(scope)))
    find = _search_ranked if question else _newest_entries
    found = [find(store, own, question, most) for own in list(owners)[:MAX_OWNERS]]
    return sorted((one for some in found for one in some), key=lambda one: -one.score)


def _search_ranked(store: MentisStore, own: str, text: str, most: int) -> list[Recollection]:
    """Return the thoughts near a text in an owner's chain and its branches."""
    ledgers = store.ledgers(own)
    hits = store.search_near(list(ledgers), text, 2 * most + 10)  # some are no longer valid
    current = [
        one for one in hits if ledgers.get(one.chain_key, ledgers[own]).is_current(one.thought)
    ]
    return [_to_recollection(one.thought, one.score.total) for one in current[:most]]


def _newest_entries(store: MentisStore, own: str, _: str, most: int) -> list[Recollection]:
    """Return the newest entries of the stores."""
    entries = store.search(own, [thoughts.store_tag(name) for name in ("user", "memory")])
    newest = store.ledger(own).current_thoughts(entries)[-most:]
    return [_to_recollection(one, 0.0) for one in reversed(newest)]


def _to_recollection(thought: Thought, score: float) -> Recollection:
    return Recollection(
        thought.content,
        session=thought.tag("session"),
        at=parse_milliseconds(thought.tag("at")),
        score=score,
        source=thought.thought_type,
        event=thought.tag("event"),
    )
