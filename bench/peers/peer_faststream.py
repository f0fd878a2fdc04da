"""FastStream on a Redis stream: one by one, in batches of 100, or with handlers at once."""

import asyncio
import os
from contextlib import suppress

import redis
from faststream import FastStream
from faststream.redis import RedisBroker, StreamSub
from work import CONCURRENCY, URL, Handler, Payload, command, publish

_STREAM, _GROUP = "events", "workers"

form = os.environ.get("PEER_FORM", "one")
broker = RedisBroker(URL, logger=None)
app = FastStream(broker, logger=None)
handler = Handler()
source = StreamSub(
    _STREAM,
    group=_GROUP,
    consumer=f"c{os.getpid()}",
    polling_interval=2_000,
    batch=form == "batch",
    max_records=100,
)

if form == "batch":

    @broker.subscriber(stream=source)
    async def batch(payloads: list[dict]) -> None:
        """Handle a batch."""
        for payload in payloads:
            await handler.arun(payload)

elif form == "many":

    @broker.subscriber(stream=source, max_workers=CONCURRENCY)
    async def many(payload: dict) -> None:
        """Handle one of several at once."""
        await handler.arun(payload)

else:

    @broker.subscriber(stream=source)
    async def one(payload: dict) -> None:
        """Handle one."""
        await handler.arun(payload)


async def _fill(count: int) -> None:
    # The subscriber makes its group at the stream's end, and would miss what is there already.
    with suppress(redis.ResponseError):
        redis.Redis.from_url(URL).xgroup_create(_STREAM, _GROUP, "0", mkstream=True)
    await broker.connect()

    async def emit(payload: Payload) -> None:
        await broker.publish(payload, stream=_STREAM)

    await publish(count, emit)


if __name__ == "__main__":
    told = command()
    asyncio.run(app.run() if told.fill is None else _fill(told.fill))
