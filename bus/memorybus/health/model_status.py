"""What the model of derivers was used for, whether it answers, and which limit is reached."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import cast

import msgspec
from redis import Redis

from memorybus.config.model_settings import ModelSettings
from memorybus.health.finding import Finding
from memorybus.redis.keys import Keys
from memorybus.text.display import count_text, iso

_HOUR_SECONDS = 3_600


class ModelStatus(msgspec.Struct, frozen=True):
    """The model of derivers over all workers; hours and months are those of UTC."""

    name: str  # the model
    calls_this_hour: int
    tokens_this_hour: int  # also those that are reserved for calls that run
    calls_this_month: int
    tokens_this_month: int
    unreadable: int  # how many answers were left because they did not fit the schema
    reached: str = ""  # the limit that holds calls back now; "" for none
    failing_since: str | None = None  # since when it fails (ISO 8601, UTC); null if it answers
    why: str = ""  # why it fails

    def __str__(self) -> str:
        """Return the use of this hour and what is wrong, as one line for people."""
        used = f"{count_text(self.calls_this_hour, 'call')}, {self.tokens_this_hour} tokens"
        held = f"; {self.reached} is reached" if self.reached else ""
        fails = f"; fails since {self.failing_since}" if self.failing_since else ""
        return f"{self.name}: {used} this hour{held}{fails}"


def read_model(redis: Redis, keys: Keys, settings: ModelSettings) -> ModelStatus | None:
    """Return the status of the model of the settings; None if they name none."""
    if not settings.base_url:
        return None
    raw = cast("Mapping[bytes, bytes]", redis.hgetall(keys.model[0]))
    fields = {name.decode(): value.decode() for name, value in raw.items()}
    seconds, _ = redis.time()
    number, today = int(fields.get("spent", 0)), datetime.fromtimestamp(seconds, UTC)
    now = {"hour": seconds // _HOUR_SECONDS, "month": today.year * 12 + today.month - 3}

    def used(window: str, what: str) -> int:
        lasts = int(fields.get(window, -1)) >= now[window]
        return int(fields.get(f"{window}:{what}", 0)) if lasts else 0

    window = "hour" if number <= 2 else "month"
    lasts = number and int(fields.get(window, -1)) >= now[window]
    return ModelStatus(
        settings.name,
        calls_this_hour=used("hour", "calls"),
        tokens_this_hour=used("hour", "tokens"),
        calls_this_month=used("month", "calls"),
        tokens_this_month=used("month", "tokens"),
        unreadable=int(fields.get("unreadable", 0)),
        reached=settings.limits[number - 1][0] if lasts else "",
        failing_since=iso(int(fields.get("failing", 0))),
        why=fields.get("why", ""),
    )


def find_model_trouble(model: ModelStatus | None) -> Iterator[Finding]:
    """Yield a finding if the model fails, and one if a limit holds its calls back."""
    if model and model.failing_since:
        yield Finding(
            "model",
            "warning",
            model.name,
            f"the model {model.name} does not answer: {model.why}",
            "start it, or correct the setting model; sessions stay due, and other derivers go on",
            model.failing_since,
        )
    if model and model.reached:
        yield Finding(
            "model",
            "warning",
            model.reached,
            f"the model {model.name} is not asked, since its budget is spent: {model.reached}",
            "wait for the next hour or month (UTC), or raise that limit in the setting model and "
            "start the workers again; sessions stay due, and other derivers go on",
        )
