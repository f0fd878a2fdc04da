"""``memorybus top`` on a real bus: what it shows, what its keys do, and what nothing stops."""

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.stalls import MARGIN
from helpers.stories.published import published
from helpers.stories.scenario import (
    NAME,
    PATIENT,
    publish,
    recorded,
    say,
    thread_worker,
    wait_applied,
)
from helpers.stories.screens import Screen, screen
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.events import DeadLetterResolved
from memorybus_console.operations.stores import Stores

SMALL, LARGE = (80, 24), (120, 40)


@contextmanager
def bus_of(
    settings: Settings, client: redis.Redis, *sessions: tuple[str, str]
) -> Iterator[Settings]:
    """Run a bus on which turns were said: one for each session and word."""
    with thread_worker(settings):
        with MemoryBus.connect(settings) as bus:
            for session, word in sessions:
                say(bus, session, word)
            assert bus.flush(timeout=25)
        wait_applied(client, settings)
        yield settings


@pytest.fixture(name="running")
def _running(redis_client: redis.Redis, make_settings: MakeSettings) -> Iterator[Settings]:
    """Return the settings of a bus with two turns, one of which was refused."""
    settings = make_settings(partitions=4, namespace="mb", **PATIENT, **recorded("Transactional"))
    with bus_of(settings, redis_client, ("s1", "hello"), ("s2", "!permanent")):
        yield settings


def steady(text: str) -> list[str]:
    """Return a screen's lines that hold anything, without what differs from run to run."""
    text = re.sub(r"\d\d:\d\d:\d\d", "HH:MM:SS", text)
    text = re.sub(r"(?<=parked )( +0 +)([\d.]+)", lambda m: m[1] + "-".rjust(len(m[2])), text)
    return [line for line in text.splitlines() if line]


HEAD = """\
 memorybus mb  CRITICAL  1 worker  4 events  HH:MM:SS UTC
 1 Overview   2 Lanes   3 Dead letters   4 Tail
 provider  state   backlog  events/s  ETA  age  refused  behind  lanes  applied
 rec       parked        0         -    -    -        1       0  4/4          3
 CRITICAL: rec: 1 event refused, 0 behind
"""
FOUND = {
    SMALL: """\
     → see why: memorybus dlq ls --group error; then: memorybus dlq retry, edit
 or discard
 WARNING: Redis keeps no append-only file: `logged` events do not survive its
 crash
     → run: redis-cli config set appendonly yes (and put it into redis.conf)
""",
    LARGE: """\
     → see why: memorybus dlq ls --group error; then: memorybus dlq retry, edit or discard
 WARNING: Redis keeps no append-only file: `logged` events do not survive its crash
     → run: redis-cli config set appendonly yes (and put it into redis.conf)
""",
}
FOOT = " q Quit  ? Keys  / Filter  g Group  p Pause  r Retry  d Discard  space Hold"


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_the_overview_fits_a_terminal(running, size):
    """G10: providers, what is wrong and what to do, at 80 by 24 as at 120 by 40."""

    async def story() -> str:
        async with screen(running, size) as shown:
            await shown.shows("append-only file")
            await shown.lacks("nothing is trimmed")
            await shown.shows("space Hold")
            assert len(shown.text.splitlines()) == size[1]
            return shown.text

    assert steady(asyncio.run(story())) == [*(HEAD + FOUND[size]).splitlines(), FOOT]


def test_each_view_has_its_key(running):
    """G10: figures, lanes, dead letters and events, by number or one after another."""

    async def story() -> None:
        async with screen(running) as shown:
            await shown.shows("rec")
            await shown.press("2")
            await shown.shows("owned")
            assert len(re.findall(r"rec +p0\d +owned", shown.text)) == 4
            await shown.press("tab")
            await shown.shows("TurnCompleted")
            assert "told to raise Permanent" in shown.text
            await shown.press("g")
            await shown.shows("keys")
            await shown.press("4")
            await shown.shows("user: hello")
            await shown.press("tab")
            await shown.shows("backlog")
            await shown.press("enter")
            await shown.shows("lanes of rec")
            await shown.press("question_mark")
            await shown.shows("Only what loses something asks")
            await shown.press("x")
            await shown.lacks("Only what loses something asks")

    asyncio.run(story())


def test_the_cursor_stays_with_its_row(running):
    """G10: who is about to act on a row does not act on another because news came."""

    async def story() -> None:
        async with screen(running) as shown:
            await shown.press("4")
            await shown.shows("user: hello")
            while "hello" not in " ".join(map(str, shown.app.grid.current.values)):
                await shown.press("down")
            publish(running, "s9", *map(str, range(30)))
            await shown.until(lambda: shown.app.grid.row_count > 30, "the news are shown")
            assert "hello" in " ".join(map(str, shown.app.grid.current.values))

    asyncio.run(story())


def test_words_narrow_the_rows(running):
    """G10: what is looked for stays in sight as news come; esc shows all again."""

    async def story() -> None:
        async with screen(running) as shown:
            await shown.press("4")
            await shown.shows("user: hello")
            await shown.press("slash")
            await shown.write("hell")
            await shown.lacks("permanent")
            await shown.press("enter")
            await shown.shows("only hell")
            await shown.press("escape")
            await shown.shows("permanent")

    asyncio.run(story())


def test_a_pause_is_done_at_once(running):
    """G10: what loses nothing is done without a question, as the command does it."""

    async def story() -> None:
        async with screen(running) as shown:
            await shown.shows("rec")
            await shown.press("p")
            await shown.shows("rec is paused")
            assert pauses(running) == {NAME: ("no reason given", "ann@host1")}
            await shown.shows("WARNING: rec is paused")
            await shown.press("p")
            await shown.shows("rec is resumed")

    asyncio.run(story())
    assert pauses(running) == {}


def pauses(settings: Settings) -> dict[str, tuple[str, str]]:
    """Return who paused what, and why."""
    with Stores(settings) as stores:
        return {name: (one.reason, one.by) for name, one in stores.instances.pauses().items()}


def test_dead_letters_are_retried_and_discarded(running):
    """G6: a retry is done at once; a discard needs a reason, and is in the log with who and why."""

    async def story() -> None:
        async with screen(running) as shown:
            await shown.press("3")
            await shown.shows("TurnCompleted")
            await shown.press("r")
            await shown.shows("0 events applied; 1 event of the")
            await shown.press("d")
            await shown.shows("would discard 1 event of 1 key")
            await shown.press("enter")
            await shown.write("a reason is no filter")
            await shown.press("escape")
            await shown.lacks("would discard 1 event of 1 key")
            await shown.shows("TurnCompleted")
            await shown.press("d")
            await shown.shows("would discard 1 event of 1 key")
            await shown.write("test data")
            await shown.press("enter")
            await shown.shows("1 event discarded")
            await shown.shows("No dead letters.")

    asyncio.run(story())
    (resolved,) = published(running, DeadLetterResolved)
    assert (resolved.action, resolved.reason, resolved.operator) == (
        "discard",
        "test data",
        "ann@host1",
    )


def test_hostile_text_stays_text(redis_client, make_settings):
    """G9: neither mark-up nor escape sequences of what people say do anything."""
    said = "[bold red]X[/] [@click=app.quit]Y[/] \x1b[2J\u202e \x07"
    settings = make_settings(partitions=4, **recorded("Transactional"))

    async def story() -> None:
        async with screen(settings, LARGE) as shown:
            await shown.press("4")
            await shown.shows("[bold red]X[/] [@click=app.quit]Y[/] \\x1b[2J")
            assert not {"\x1b", "\x07", "\u202e"} & set(shown.text)
            await shown.press("slash")
            await shown.write("[/]")
            await shown.shows("only [/]")

    with bus_of(settings, redis_client, ("[red]s", said)):
        asyncio.run(story())


@pytest.mark.long
def test_a_redis_that_hangs_stops_no_key(make_settings, private_redis):
    """G9: the screen answers, says since when it sees nothing, and can be left at once."""
    settings = make_settings(url=private_redis.url, partitions=4, **recorded("Transactional"))

    async def story() -> float:
        async with screen(settings) as shown:
            await shown.shows("rec")
            private_redis.freeze()
            await shown.shows("no news for")
            await shown.press("2")
            await shown.shows("p03")
            await shown.press("1")
            await shown.shows("ETA")
            assert "rec" in shown.text
            begun = time.monotonic()
        return time.monotonic() - begun

    with closing(private_redis.client()) as client, bus_of(settings, client, ("s", "hello")):
        try:
            assert asyncio.run(story()) < 2 + MARGIN
        finally:
            private_redis.thaw()


def test_a_bus_that_is_not_there_is_said(make_settings):
    """G9: without Redis it says why, and shows what it can."""
    settings = make_settings(url="redis://127.0.0.1:1/0")

    async def story() -> None:
        async with screen(settings) as shown:
            await shown.shows("127.0.0.1:1")
            await shown.shows("no news for")

    asyncio.run(story())


def test_a_look_that_comes_after_the_end_is_dropped(running):
    """G9: the reader's thread may still look while the screen is left; that is no error."""

    async def story() -> None:
        async with screen(running) as shown:
            await shown.shows("rec")
            app = shown.app
        app.take(app._reader.read())
        app._show_head()

    asyncio.run(story())


def test_what_is_held_does_not_change(running):
    """G10: somebody who reads a row keeps it."""

    async def story() -> None:
        async with screen(running) as shown:
            await shown.press("4")
            await shown.shows("user: hello")
            await shown.press("space")
            await shown.shows("frozen")
            publish(running, "s3", "newer")
            await still(shown)
            await shown.press("space")
            await shown.shows("user: newer")

    async def still(shown: Screen) -> None:
        looks = []
        read = shown.app._reader.read

        def counted() -> object:
            looks.append(1)
            return read()

        shown.app._reader.read = counted
        await shown.until(lambda: len(looks) > 2, "it has looked again")
        assert "newer" not in shown.text

    asyncio.run(story())
