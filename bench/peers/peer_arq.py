"""arq; with its default of a half-second poll it would do 209 jobs a second, so it is told less."""

import asyncio
from typing import Any, ClassVar

from arq import create_pool, run_worker
from arq.connections import RedisSettings
from work import CONCURRENCY, URL, Handler, Payload, command, publish

handler = Handler()


async def job(context: dict[str, Any], payload: Payload) -> None:
    """Handle one."""
    await handler.arun(payload)


class Worker:
    """What arq calls its settings."""

    functions: ClassVar = [job]
    redis_settings = RedisSettings.from_dsn(URL)
    max_jobs = CONCURRENCY
    poll_delay = 0.01


async def _fill(count: int) -> None:
    pool = await create_pool(Worker.redis_settings)

    async def emit(payload: Payload) -> None:
        await pool.enqueue_job("job", payload)

    await publish(count, emit)


if __name__ == "__main__":
    told = command()
    if told.fill is None:
        run_worker(Worker)
    else:
        asyncio.run(_fill(told.fill))
