"""What two generations or copies of a provider would recall, side by side."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from memorybus.errors import ConfigError
from memorybus.jobs.inspect import InspectionFailed, InstanceInspector
from memorybus.operations.copies.generations import is_dropped, provider_of
from memorybus.operations.rebuild.diff import RecallDifference, compare_recalls
from memorybus.operations.stores import Stores
from memorybus.recall.model import RecallRequest
from memorybus.registry.instances import InstancesView
from memorybus.surfaces.web.page import Asked, Page

_LONGEST = 2_000
"""Characters of a question."""


def show(asked: Asked) -> Mapping[str, Any]:
    """Return both sides of what is asked, if something is.

    Raises:
        ConfigError: nobody knows the provider, or one of the instances.
        LogUnavailable: Redis is away.
    """
    provider, query = asked.path["name"], asked.query.get("q", "")[:_LONGEST]
    with Stores(asked.settings) as stores:
        stores.check_partitions()
        sight = stores.instances.look()
    names = instances(provider, sight)
    pair = (asked.query.get("one") or names[0], asked.query.get("two") or names[-1])
    known = tuple((provider_of(one, sight, asked.settings.providers), one) for one in pair)
    if any(of != provider for of, _ in known):
        raise ConfigError(f"{', '.join(pair)}: both have to be instances of {provider}")
    found, failed = None, ""
    if query.strip():
        try:
            found = _differing(asked, (known[0], known[1]), query)
        except InspectionFailed as error:
            failed = str(error)
    return {
        "provider": provider,
        "names": names,
        "pair": pair,
        "asked_for": query,
        "whose": _whose(asked),
        "found": found,
        "rows": list(zip_longest(found.first.texts, found.second.texts)) if found else [],
        "failed": failed,
    }


def instances(provider: str, sight: InstancesView) -> list[str]:
    """Return a provider's instances that are there, its own first; pure."""
    copies = sorted(one.name for one in sight.all.values() if one.provider == provider)
    names = list(dict.fromkeys([provider, *copies]))
    return [name for name in names if not is_dropped(name, sight)] or [provider]


def _whose(asked: Asked) -> dict[str, str]:
    """Return whose memories are asked for: those of the settings where nothing is given."""
    own = asked.settings
    default = {"agent": own.agent, "user": own.user, "workspace": own.workspace}
    return {name: asked.query.get(name, value) for name, value in default.items()}


def _differing(
    asked: Asked, pair: tuple[tuple[str, str], tuple[str, str]], query: str
) -> RecallDifference:
    whose = _whose(asked)
    agent, user = whose["agent"] or None, whose["user"] or None  # nobody named means everyone
    want = RecallRequest(query, agent, user, whose["workspace"], detail=True)
    inspector = InstanceInspector(asked.settings, asked.site.clock)
    return compare_recalls(inspector, pair, [want])[0]


PAGE = Page(path="/history/{name}/diff", template="history_diff.html", show=show)
