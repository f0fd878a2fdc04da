"""docket; its default of a quarter-second look would do 41 tasks a second, so it is told less."""

import asyncio
import logging
from datetime import timedelta

from docket import Docket, Worker
from work import CONCURRENCY, URL, Handler, Payload, command, publish

handler = Handler()


async def job(payload: dict) -> None:
    """Handle one."""
    await handler.arun(payload)


async def _fill(count: int) -> None:
    async with Docket(name="peer", url=URL) as docket:
        docket.register(job)

        async def emit(payload: Payload) -> None:
            await docket.add(job)(payload)

        await publish(count, emit)


async def _work() -> None:
    look = timedelta(milliseconds=10)
    async with Docket(name="peer", url=URL) as docket:
        docket.register(job)
        async with Worker(docket, concurrency=CONCURRENCY, minimum_check_interval=look) as worker:
            await worker.run_forever()


if __name__ == "__main__":
    logging.getLogger().setLevel(logging.WARNING)
    told = command()
    asyncio.run(_work() if told.fill is None else _fill(told.fill))
