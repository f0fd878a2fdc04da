"""An interrupt at each instruction in turn, as Ctrl-C may fall."""

import itertools
import sys
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any


class Interrupted(BaseException):
    """What a signal raises, as Ctrl-C does."""


def at_every_instruction(of: ModuleType, act: Callable[[], object]) -> Iterator[int]:
    """Act again and again, each time interrupted one instruction of a module later.

    Yields:
        How many instructions had begun; what must hold after an interrupt is checked then. It ends
        when an act was not interrupted.
    """
    for steps in itertools.count(1):
        if not _interrupted(of, act, steps):
            return
        yield steps


def _interrupted(of: ModuleType, act: Callable[[], object], steps: int) -> bool:
    left = steps

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != of.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if not left:
                raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except Interrupted:
        return True
    finally:
        sys.settrace(before)
    return False
