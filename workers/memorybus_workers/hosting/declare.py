"""Builds what a worker registers about the provider instances that it serves."""

import logging
from collections.abc import Mapping, Sequence

import msgspec
from memorybus.config.settings import Settings
from memorybus.events import ContextCompressing
from memorybus.registry.roster import ProviderInfo
from memorybus.registry.tools import MOST_BYTES, DeclaredTools
from memorybus.text.redact import describe_error
from memorybus_providers.base import MemoryProvider

_log = logging.getLogger("memorybus")


def infos_of(
    settings: Settings, providers: Mapping[str, MemoryProvider], among: Sequence[str]
) -> dict[str, ProviderInfo]:
    """Return what is registered about several instances, which need not be open.

    Args:
        providers: the instances, by name.
        among: the names of these and other instances, in the order of recall.
    """
    return {
        name: info_of(settings.provider_kind(name), provider, among.index(name))
        for name, provider in providers.items()
    }


def info_of(kind: str, provider: MemoryProvider, order: int, copy_of: str = "") -> ProviderInfo:
    """Return what is registered about one instance, which need not be open."""
    return ProviderInfo(
        kind=kind,
        delivery=provider.delivery,
        placement=provider.placement,
        order=order,
        recall=provider.capabilities.recall,
        as_of=provider.capabilities.as_of,
        compresses=ContextCompressing in provider.capabilities.handles,
        prompts=type(provider).system_prompt_block is not MemoryProvider.system_prompt_block,
        examines=type(provider).health is not MemoryProvider.health,
        exports=provider.capabilities.exports,
        retracts=provider.capabilities.retracts,
        note=provider.note,
        copy_of=copy_of,
    )


def tools_of(providers: Mapping[str, MemoryProvider]) -> dict[str, DeclaredTools]:
    """Return the tools of those instances that have some; the instances need not be open.

    If an instance's schemas cannot be read, or are too large, it is registered without tools, and
    the reason is logged.
    """
    return {
        name: DeclaredTools(schemas, tuple(sorted(provider.capabilities.reading_tools)))
        for name, provider in providers.items()
        if provider.capabilities.tools and (schemas := _schemas(name, provider))
    }


def _schemas(name: str, provider: MemoryProvider) -> tuple[object, ...]:
    """Return an instance's schemas as JSON values; none if they cannot be published.

    The code that offers the tools checks whether each schema is valid.
    """
    try:
        body = msgspec.json.encode(list(provider.get_tool_schemas()))
        if len(body) <= MOST_BYTES:
            return msgspec.json.decode(body, type=tuple[object, ...])
        why = f"its schemas have {len(body)} bytes, and {MOST_BYTES} are the most"
    except Exception as error:  # its lanes are served, whatever the provider raises here
        why = describe_error(error)
    _log.warning(
        "provider %s is registered without its tools: %s", name, why, extra={"provider": name}
    )
    return ()
