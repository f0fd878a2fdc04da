"""Pictures of a night in which a backend refuses, for docs/operations.md (``make screenshots``)."""

import tempfile
from contextlib import closing
from pathlib import Path

from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status

from helpers.faults.remote import Backend
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import thread_worker
from helpers.web.browser import chromium
from helpers.web.pages import HASH
from helpers.web.screenshots import Picture, redis, take

NIGHT = (
    Picture("night-overview.png", "/"),
    Picture("night-dead-letters.png", "/dead"),
    Picture("night-plan.png", "/dead/retry?all=1", height=480),
)
REFUSED = 3


def main() -> None:
    """Play it as far as the moment in which somebody looks, and take the pictures."""
    with (
        tempfile.TemporaryDirectory(prefix="mb-") as home,
        redis() as url,
        closing(Backend()) as it,
    ):
        table = {"kind": "helpers.faults.remote:Remote", "port": it.port, "timeout": 5}
        settings = Settings(
            url=url,
            data_dir=Path(home),
            partitions=8,
            page_token=HASH,
            providers=("mem",),
            provider={"mem": table},
        )
        with thread_worker(settings), chromium() as browser:
            _talk(settings, range(5))
            it.misbehave("402", REFUSED)
            _talk(settings, range(5, 10))
            wait_until(lambda: _parked(settings) == REFUSED, "the others have gone on")
            take(settings, browser, NIGHT)


def _talk(settings: Settings, turns: range) -> None:
    with MemoryBus.connect(settings) as bus:
        for number in turns:
            for chat in range(8):
                session = bus.session(f"chat-{chat}", warm=False)
                session.turn_completed(f"turn {number}", "ok", ordinal=number)
        assert bus.flush("logged", 30)
    wait_until(lambda: not read_status(settings).providers[0].backlog, "all is applied, or parked")


def _parked(settings: Settings) -> int:
    return read_status(settings).providers[0].parked_keys


if __name__ == "__main__":
    main()
