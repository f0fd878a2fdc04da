"""The screen of `memorybus top`, driven by textual's pilot: its text, and waiting for it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from memorybus.config.settings import Settings
from memorybus_console.top.app import TopApp
from textual.pilot import Pilot

_POLL_SECONDS = 0.02


class Screen:
    """A running screen.

    Attributes:
        app: the program.
        pilot: presses keys.
    """

    def __init__(self, app: TopApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def text(self) -> str:
        """What stands on the screen, line by line."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def press(self, *keys: str) -> None:
        """Press keys."""
        await self.pilot.press(*keys)

    async def write(self, words: str) -> None:
        """Press the keys of a text."""
        await self.pilot.press(*("space" if char == " " else char for char in words))

    async def until(self, condition: Callable[[], object], what: str, seconds: float = 30) -> None:
        """Wait until something is so; fail with the screen's text if it does not become so."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}\n{self.text}"
            await asyncio.sleep(_POLL_SECONDS)

    async def shows(self, words: str, seconds: float = 30) -> None:
        """Wait until a text stands on the screen."""
        await self.until(lambda: words in self.text, f"the screen shows {words!r}", seconds)

    async def lacks(self, words: str) -> None:
        """Wait until a text stands on the screen no more."""
        await self.until(lambda: words not in self.text, f"the screen shows no {words!r}")


@asynccontextmanager
async def screen(settings: Settings, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Screen]:
    """Run it, in a terminal of so many columns and lines."""
    app = TopApp(settings, "ann@host1")
    async with app.run_test(size=size, notifications=True) as pilot:
        yield Screen(app, pilot)
