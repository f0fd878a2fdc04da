"""Describes kinds and unopened instances for commands, which may not import providers."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MissingProvider
from memorybus.msgspec_types import prepared
from memorybus.processes.reports import InstanceDescription, KindOffer, OptionField
from memorybus_providers.base import MemoryProvider
from memorybus_providers.registry import load, registered_kinds, schema_of

from memorybus_workers.hosting.instances import make_instance, place_of


def list_offers(kinds: Sequence[str] = ()) -> Iterator[KindOffer]:
    """Yield what each kind of provider offers; all registered kinds if none is named."""
    for kind in kinds or registered_kinds():
        try:
            yield _offer_of(kind, load(kind))
        except (MissingProvider, ConfigError, msgspec.ValidationError) as error:
            yield KindOffer(kind, missing=str(error))


def _offer_of(kind: str, provider: type[MemoryProvider]) -> KindOffer:
    can, schema = provider.capabilities, schema_of(kind)
    return KindOffer(
        kind=kind,
        summary=_first_sentence(provider),
        delivery=provider.delivery,
        placement=provider.placement,
        recall=can.recall,
        tools=can.tools,
        as_of=can.as_of,
        retracts=can.retracts,
        options=None
        if schema is None
        else msgspec.convert(list(schema), prepared(tuple[OptionField, ...])),
    )


def _first_sentence(provider: type[MemoryProvider]) -> str:
    paragraph = (inspect.getdoc(provider) or "").partition("\n\n")[0]
    return " ".join(paragraph.split())


def describe(
    settings: Settings, provider: str, name: str, options: Mapping[str, Any]
) -> InstanceDescription:
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
