"""Describes an unopened instance for commands, which may not import providers themselves."""

from collections.abc import Mapping
from typing import Any

from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.processes.reports import InstanceDescription

from memorybus_workers.hosting.instances import make_instance, place_of


def describe(
    settings: Settings, provider: str, name: str, options: Mapping[str, Any]
) -> InstanceDescription:
    """Describe a copy of an instance, or the instance itself if `name` is its own name.

    Raises:
        MissingProvider, ConfigError: it cannot be made.
    """
    kind = "" if name == provider else provider
    made = make_instance(settings, name, SYSTEM, kind=kind, options=options)
    return InstanceDescription(
        kind=settings.provider_kind(provider),
        delivery=made.delivery,
        placement=made.placement,
        by_home=made.fresh_by_home,
        place=place_of(settings.provider_options(provider), made),
        tunable=tuple(sorted(made.tunable)),
    )
