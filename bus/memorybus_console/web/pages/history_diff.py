"""Shows what two generations or copies of a provider would recall, side by side."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from memorybus.errors import ConfigError
from memorybus.jobs.inspect import InspectionFailed, InstanceInspector
from memorybus.recall.model import RecallRequest
from memorybus.registry.instances import InstancesView

from memorybus_console.operations.copies.generations import is_dropped, provider_of
from memorybus_console.operations.rebuild.comparison import RecallDifference, compare_recalls
from memorybus_console.operations.stores import checked_stores
from memorybus_console.web.page import Page, PageRequest

_MAX_QUESTION_CHARS = 2_000  # the most characters of a question


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return what both instances recall for the question, if there is one."""
    provider, query = request.path["name"], request.query.get("q", "")[:_MAX_QUESTION_CHARS]
    with checked_stores(request.settings) as stores:
        view = stores.instances.read_view()
    names = instances(provider, view)
    pair = (request.query.get("one") or names[0], request.query.get("two") or names[-1])
    sides = tuple((provider_of(name, view, request.settings.providers), name) for name in pair)
    if any(of != provider for of, _ in sides):
        raise ConfigError(f"{', '.join(pair)}: both must be instances of {provider}")
    difference, failed = None, ""
    if query.strip():
        try:
            difference = _compare(request, (sides[0], sides[1]), query)
        except InspectionFailed as error:
            failed = str(error)
    return {
        "provider": provider,
        "names": names,
        "pair": pair,
        "asked_for": query,
        "scope": _scope_fields(request),
        "difference": difference,
        "rows": list(zip_longest(difference.first.texts, difference.second.texts))
        if difference
        else [],
        "failed": failed,
    }


def instances(provider: str, view: InstancesView) -> list[str]:
    """Return a provider's existing instances, the one with its own name first; pure."""
    copies = sorted(
        instance.name for instance in view.all.values() if instance.provider == provider
    )
    names = list(dict.fromkeys([provider, *copies]))
    return [name for name in names if not is_dropped(name, view)] or [provider]


def _scope_fields(request: PageRequest) -> dict[str, str]:
    """Return the scope of the question; the settings decide what is not given."""
    own = request.settings
    default = {"agent": own.agent, "user": own.user, "workspace": own.workspace}
    return {name: request.query.get(name, value) for name, value in default.items()}


def _compare(
    request: PageRequest, pair: tuple[tuple[str, str], tuple[str, str]], query: str
) -> RecallDifference:
    scope = _scope_fields(request)
    agent, user = scope["agent"] or None, scope["user"] or None  # an empty field means everyone
    want = RecallRequest(query, agent, user, scope["workspace"], detail=True)
    inspector = InstanceInspector(request.settings, request.site.clock)
    return compare_recalls(inspector, pair, [want])[0]


PAGE = Page(path="/history/{name}/diff", template="history_diff.html", show=show)
