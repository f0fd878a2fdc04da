"""A provider: its lanes, what fails there; pause and resume."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from memorybus.errors import ConfigError
from memorybus.health.providers import ProviderStatus
from memorybus.operations.providers import lifecycle
from memorybus.operations.providers.lanes import view_lanes
from memorybus.operations.stores import Stores
from memorybus.surfaces.web.page import Act, Asked, Done, Page


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the lanes of a provider or a copy.

    Raises:
        ConfigError: nobody knows it, or Redis is away.
    """
    look, name = asked.look(), asked.path["name"]
    one = found(asked, name)
    instance = one.live or one.name
    seen = view_lanes(asked.settings, instance, look.lanes[instance])
    about = {one.name, one.live}
    findings = [each for each in look.findings if each.subject.partition(":")[0] in about]
    return {"look": look, "one": one, "instance": instance, "seen": seen, "findings": findings}


def found(asked: Asked, name: str) -> ProviderStatus:
    """Return the status of a provider or a copy.

    Raises:
        ConfigError: nobody knows it, or Redis is away.
    """
    status = asked.look().status
    if status is None:
        raise ConfigError(asked.look().verdict.line)
    for one in (*status.providers, *status.copies):
        if one.name == name:
            return one
    raise ConfigError(f"no provider is called {name!r}; the overview has those that are known")


def pause(asked: Asked) -> Done:
    """Let a provider's lanes stand still."""
    name = asked.path["name"]
    with Stores(asked.settings) as stores:
        stores.check_partitions()
        done = lifecycle.pause_instance(stores, name, asked.reason, asked.operator)
    said = f"{done.name} pauses" if done.changed else f"{done.name} was paused: {done.reason}"
    return Done(f"{said}; nothing is lost, and what it remembers is still recalled", _here(name))


def resume(asked: Asked) -> Done:
    """Let a provider's lanes go on."""
    name = asked.path["name"]
    with Stores(asked.settings) as stores:
        stores.check_partitions()
        done = lifecycle.resume_instance(stores, name)
    said = "goes on" if done.changed else "was not paused"
    return Done(f"{done.name} {said}: {done.backlog} events wait", _here(name))


def _here(name: str) -> str:
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
