"""streaq, silent tasks (no result kept)."""

import asyncio

from streaq import Worker
from work import CONCURRENCY, URL, Handler, Payload, command, publish

worker = Worker(redis_url=URL, concurrency=CONCURRENCY)
handler = Handler()


@worker.task(silent=True)
async def job(payload: dict) -> None:
    """Handle one."""
    await handler.arun(payload)


async def _fill(count: int) -> None:
    async def emit(payload: Payload) -> None:
        await job.enqueue(payload)

    async with worker:
        await publish(count, emit)


if __name__ == "__main__":
    told = command()
    if told.fill is None:
        worker.run_sync()
    else:
        asyncio.run(_fill(told.fill))
