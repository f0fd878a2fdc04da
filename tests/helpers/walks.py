"""Lists the calls that one operation makes of our own functions, in its own thread.

The bounds of `docs/architecture.md` on the walk of an event and of a recall are tested with it.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec

_TRACERS = "opentelemetry.trace"
"""The bus makes spans only in a process that has loaded this module."""


class Walk(msgspec.Struct, frozen=True):
    """The calls of an operation, in order, each as ``module:function``."""

    calls: tuple[str, ...]

    @property
    def modules(self) -> frozenset[str]:
        """The modules that the calls pass through."""
        return frozenset(call.partition(":")[0] for call in self.calls)


def walk_of(operation: Callable[[], object], package: str = "memorybus") -> Walk:
    """Return the calls of functions of a package that an operation makes without OpenTelemetry.

    Comprehensions are not calls: later versions of Python have no frames for them. A generator
    is a call each time it goes on.
    """
    calls: list[str] = []

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        name = frame.f_code.co_qualname
        if event == "call" and module.partition(".")[0] == package and not name.endswith("comp>"):
            calls.append(f"{module}:{name}")

    before, tracers = sys.getprofile(), sys.modules.pop(_TRACERS, None)
    sys.setprofile(note)
    try:
        operation()
    finally:
        sys.setprofile(before)
        if tracers is not None:  # another test of this process has loaded it
            sys.modules[_TRACERS] = tracers
    return Walk(tuple(calls))
