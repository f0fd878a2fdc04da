"""Two people's turns in a log that the command line finds in its environment."""

from collections.abc import Callable

import pytest
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings


@pytest.fixture
def ready(
    make_settings: Callable[..., Settings], redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """Return settings that the command line finds in its environment; all may be sealed at once."""
    settings = make_settings(url=redis_url, seal_after=0.0, segment_age=0.0, partitions=2)
    for name in ("url", "namespace", "data_dir", "seal_after", "segment_age", "partitions"):
        monkeypatch.setenv(f"MEMORYBUS_{name.upper()}", str(getattr(settings, name)))
    return settings


def publish(settings: Settings, turns: int) -> None:
    """Publish turns of two people, each in a session of its own."""
    with MemoryBus.connect(settings) as bus:
        for user in ("ann", "bob"):
            session = bus.session(f"s-{user}", user=user, warm=False)
            for turn in range(turns):
                session.turn_completed(f"{user} asks {turn}", "well", ordinal=turn)
        assert bus.flush("logged", 10)
