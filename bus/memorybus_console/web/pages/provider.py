"""Shows a provider's lanes and its failing keys; pauses and resumes it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from memorybus.errors import ConfigError
from memorybus.health.status import ProviderStatus

from memorybus_console.operations.providers import lifecycle
from memorybus_console.operations.providers.lanes import view_lanes
from memorybus_console.operations.stores import Stores
from memorybus_console.web.page import Act, ActResult, Page, PageRequest


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the lanes of a provider or a copy.

    Raises:
        ConfigError: nobody knows it, or Redis is away.
    """
    bus, name = request.bus_state(), request.path["name"]
    one = find_provider(request, name)
    instance = one.live or one.name
    seen = view_lanes(request.settings, instance, bus.lanes[instance])
    about = {one.name, one.live}
    findings = [each for each in bus.findings if each.subject.partition(":")[0] in about]
    return {"bus": bus, "one": one, "instance": instance, "seen": seen, "findings": findings}


def find_provider(request: PageRequest, name: str) -> ProviderStatus:
    """Return the status of a provider or a copy.

    Raises:
        ConfigError: nobody knows it, or Redis is away.
    """
    status = request.bus_state().status
    if status is None:
        raise ConfigError(request.bus_state().verdict.line)
    for one in (*status.providers, *status.copies):
        if one.name == name:
            return one
    raise ConfigError(f"no provider is called {name!r}; the overview has those that are known")


def pause(request: PageRequest) -> ActResult:
    """Pause a provider's lanes."""
    name = request.path["name"]
    with Stores(request.settings) as stores:
        stores.check_partitions()
        done = lifecycle.pause_instance(stores, name, request.reason, request.operator)
    said = f"{done.name} is paused" if done.changed else f"{done.name} was paused: {done.reason}"
    return ActResult(
        f"{said}; nothing is lost, and what it remembers is still recalled", _page_path(name)
    )


def resume(request: PageRequest) -> ActResult:
    """Resume a provider's lanes."""
    name = request.path["name"]
    with Stores(request.settings) as stores:
        stores.check_partitions()
        done = lifecycle.resume_instance(stores, name)
    said = "is resumed" if done.changed else "was not paused"
    return ActResult(f"{done.name} {said}: {done.backlog} events wait", _page_path(name))


def _page_path(name: str) -> str:
    return f"/providers/{quote(name, safe='')}"


PAGE = Page(
    path="/providers/{name}",
    template="provider.html",
    show=show,
    acts=(
        Act("/providers/{name}/pause", "pause provider", pause),
        Act("/providers/{name}/resume", "resume provider", resume),
    ),
)
