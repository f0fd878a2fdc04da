"""taskiq on a Redis stream or list; its worker is `taskiq worker peer_taskiq:broker`."""

import asyncio
import os

from taskiq_redis import ListQueueBroker, RedisStreamBroker
from work import URL, Handler, Payload, command, publish

# Its brokers read replies in the shape of RESP2.
broker = (
    ListQueueBroker(URL, protocol=2)
    if os.environ.get("PEER_FORM") == "list"
    else RedisStreamBroker(URL, consumer_id="0", protocol=2)
)
handler = Handler()


@broker.task(task_name="job")
async def job(payload: dict) -> None:
    """Handle one."""
    await handler.arun(payload)


async def _fill(count: int) -> None:
    await broker.startup()

    async def emit(payload: Payload) -> None:
        await job.kiq(payload)

    await publish(count, emit)


if __name__ == "__main__":
    asyncio.run(_fill(command().fill or 0))
