"""Upcasts read old events: one step per version, on plain dicts, before the typed decode.

To change an event's meaning: bump its ``version``, add a step here, and keep a golden file of the
old bytes in ``tests/golden/``.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Fields: TypeAlias = dict[str, Any]
Upcast: TypeAlias = Callable[[Fields], Fields]
Upcasts: TypeAlias = Mapping[tuple[str, int], Upcast]
"""By event type and version, the step that turns the fields into those of the next version."""

UPCASTS: Upcasts = {}


def upcast(fields: Fields, kind: str, found: int, wanted: int, steps: Upcasts) -> Fields:
    """Bring an event's fields from one version to another, one step at a time.

    Args:
        fields: the event as decoded from msgpack; not changed.
        kind: the event's type tag.
        found: the version on the wire.
        wanted: the version this release writes; at least `found`.
        steps: the known steps.

    Raises:
        KeyError: a step is missing, which is a bug of this release.
    """
    current = dict(fields)
    for version in range(found, wanted):
        current = steps[kind, version](current)
    return current
