"""The mask under which Hermes hands texts to memory providers: its own, or else the bus's."""

import importlib
from collections.abc import Callable
from typing import TypeVar, cast

from memorybus import mask_texts, masked

_T = TypeVar("_T")


def mask_as_host(value: _T) -> _T:
    """Return a raw value from Hermes's files with secrets masked, as a hook would have passed it.

    Do not mask twice: what a mask leaves of a secret may look like another secret.
    """
    return mask_texts(value, _host_mask() or masked)


def mask_hand_off(value: _T) -> _T:
    """Return what an agent hands to its memory manager, masked as Hermes's own manager masks it."""
    mask = _host_mask()
    return mask_texts(value, mask) if mask else value


def _host_mask() -> Callable[[str], str] | None:
    try:
        module = importlib.import_module("agent.redact")
    except ImportError:  # before 0.21.6, or outside of Hermes's environment
        return None
    found = getattr(module, "redact_for_egress", None)
    return cast("Callable[[str], str]", found) if callable(found) else None
