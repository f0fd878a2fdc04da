"""Shows a provider's lanes and its failing keys; pauses, resumes and retries it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from memorybus.errors import LogUnavailable
from memorybus.health.status import ProviderStatus

from memorybus_console.actions.providers import (
    PauseProvider,
    ResumeProvider,
    RetryProviderNow,
)
from memorybus_console.operations.providers.inventory import view_lanes
from memorybus_console.web.page import Act, NoSuchPage, Page, PageRequest


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the lanes of a provider or a copy."""
    bus, name = request.bus_state(), request.path["name"]
    provider = find_provider(request, name)
    instance = provider.live or provider.name
    seen = view_lanes(request.settings, instance, bus.lanes[instance])
    about = {provider.name, provider.live}
    findings = [each for each in bus.findings if each.subject.partition(":")[0] in about]
    return {
        "bus": bus,
        "provider": provider,
        "instance": instance,
        "seen": seen,
        "findings": findings,
        "limits": request.settings.provider_limits(provider.copy_of or provider.name),
    }


def find_provider(request: PageRequest, name: str) -> ProviderStatus:
    """Return the status of a provider or a copy."""
    status = request.bus_state().status
    if status is None:
        raise LogUnavailable(request.bus_state().verdict.line)
    for provider in (*status.providers, *status.copies):
        if name in (provider.name, provider.live):
            return provider
    raise NoSuchPage(f"no provider is called {name!r}; the overview has those that are known")


def _page_path(request: PageRequest) -> str:
    return f"/providers/{quote(request.path['name'], safe='')}"


PAGE = Page(
    path="/providers/{name}",
    template="provider.html",
    show=show,
    acts=(
        Act("/providers/{name}/pause", PauseProvider, _page_path),
        Act("/providers/{name}/resume", ResumeProvider, _page_path),
        Act("/providers/{name}/retry-now", RetryProviderNow, _page_path),
    ),
)
