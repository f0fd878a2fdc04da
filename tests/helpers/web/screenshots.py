"""Pictures of the page for the documentation: ``make screenshots`` writes docs/pictures.

The people in them are those of `memorybus demo`; one provider has no worker, so that something is
wrong to be seen.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus_console.operations.demo import PLAY, play_steps
from memorybus_console.operations.preview import Asker, preview_prompt
from memorybus_console.operations.providers import lifecycle
from memorybus_console.operations.stores import Stores

from helpers.processes.waiting import wait_until
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import environ, thread_worker
from helpers.web.browser import Browser, chromium
from helpers.web.pages import HASH, TOKEN, served

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
SERVED = ("builtin", "holographic")
WAITS = "postgres"


class Picture(msgspec.Struct, frozen=True):
    """One picture: its file, which view it shows, its size in pixels, in light or dark.

    With a selector it is taken once that is there.
    """

    name: str
    path: str
    width: int = 1100
    height: int = 640
    scheme: str = "light"
    waits: str = ""


CHART, BLOCK = ".chart canvas", "#block"
ASKED = urlencode({"user": PLAY.user, "agent": PLAY.agent})

ALL = (
    Picture("page-overview.png", "/", waits=CHART),
    Picture("page-overview-phone.png", "/", 390, 780, "dark", waits=CHART),
    Picture("page-provider.png", "/providers/holographic"),
    Picture("page-history.png", "/history/holographic"),
    Picture("page-recall.png", f"/recall?{ASKED}&{urlencode({'q': PLAY.question})}", waits=BLOCK),
    Picture("page-memories.png", f"/memories/kept?{ASKED}&provider=holographic", waits=".memory"),
)


def main() -> None:
    """Take all pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mb-") as home, redis() as url, chromium() as browser:
        settings = Settings(
            url=url, data_dir=Path(home), partitions=8, page_token=HASH, providers=(*SERVED, WAITS)
        )
        with thread_worker(settings, SERVED), _recalling(settings):
            _play(settings)
            _recalled(settings)
            take(settings, browser, ALL)


def take(settings: Settings, browser: Browser, pictures: Sequence[Picture]) -> None:
    """Take pictures of the page of a bus that runs."""
    with served(settings) as visitor:
        for one in pictures:
            with browser.tab(visitor.address, one.scheme, one.width, one.height) as tab:
                tab.sign_in("ann", TOKEN)
                tab.open(one.path)
                if one.waits:
                    tab.page.locator(one.waits).first.wait_for()
                tab.page.screenshot(path=PICTURES / one.name)


def _play(settings: Settings) -> None:
    """Let the demo's people talk, and have one provider paused."""
    with MemoryBus.connect(settings) as bus:
        for number, act in enumerate(PLAY.acts, 1):
            session = bus.session(f"lens-{number}", agent=PLAY.agent, user=PLAY.user, warm=False)
            for _ in play_steps(act.steps, session):
                pass
        assert bus.flush("logged", 30)
    with Stores(settings) as stores:
        lifecycle.pause_instance(stores, SERVED[0], "its disk is exchanged", "ann")
        heads = sum(head.n for head in stores.history.log.heads())
        wait_until(
            lambda: sum(lane.n for lane in stores.lanes.states(SERVED[1])) == heads,
            "all is applied",
        )


def _recalled(settings: Settings) -> None:
    """Ask until recalls are answered in time: their process takes a second to begin."""
    who = Asker(PLAY.agent, PLAY.user)
    wait_until(lambda: preview_prompt(settings, PLAY.question, who).block, "it is recalled", 60)


@contextmanager
def _recalling(settings: Settings) -> Iterator[None]:
    """Run a worker that answers recalls: the one on our thread does not."""
    told = msgspec.structs.replace(settings, providers=SERVED)
    command = [sys.executable, "-m", "memorybus_workers", "worker", "--jobs", "1"]
    with subprocess.Popen(command, env=os.environ | environ(told), stdout=subprocess.DEVNULL) as it:
        try:
            yield
        finally:
            it.terminate()


@contextmanager
def redis() -> Iterator[str]:
    """Run a Redis; yield where."""
    server = RedisServer(appendonly="yes")
    server.start()
    try:
        yield server.url
    finally:
        server.remove()


if __name__ == "__main__":
    main()
