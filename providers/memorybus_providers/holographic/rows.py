"""The columns from which a `Fact` is read, and the scopes whose facts a query may see."""

from typing import Final

from memorybus_providers.base import RecallScope
from memorybus_providers.ranking.facts import clean

SCOPES: Final = """
select id from scopes where (:agent is null or agent = :agent)
    and (:user is null or user = :user) and (:workspace is null or workspace = :workspace)
"""
"""The rows of the scopes that a recall may see; its parameters are those of `limits_of`."""

IS_OUT: Final = "state = 'archived' and (successor <> '' or used <= since)"
"""Whether a curated fact is in no prompt: what was used since it was archived comes back."""

FACT: Final = """
select facts.id, facts.session, facts.seq, coalesce(helpful, 0), coalesce(unhelpful, 0),
    facts.name, sessions.name, facts.kind, facts.speaker, facts.at, facts.content, facts.category,
    facts.tags, lower(hex(facts.event_id)), facts.retrieval_count, coalesce(used, 0),
    coalesce(state, '') = 'archived'
from facts join sessions on sessions.id = facts.session
left join judgements on judgements.scope = facts.scope and judgements.fact = facts.name
left join curations on curations.scope = facts.scope and curations.fact = facts.name
"""
"""Selects the columns that `finding.source.fact_of` takes."""


def limits_of(scope: RecallScope) -> dict[str, str | None]:
    """Return a scope as the parameters of `SCOPES`."""
    parts = {"agent": scope.agent, "user": scope.user, "workspace": scope.workspace}
    return {name: value if value is None else clean(value) for name, value in parts.items()}
