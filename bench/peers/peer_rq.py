"""RQ with a SimpleWorker (no fork for each job), every option at its default."""

from redis import Redis
from rq import Queue, SimpleWorker
from work import URL, Handler, Payload, command, payloads

handler = Handler()


def job(payload: Payload) -> None:
    """Handle one."""
    handler.run(payload)


if __name__ == "__main__":
    told = command()
    redis = Redis.from_url(URL)
    queue = Queue("peer", connection=redis)
    if told.fill is None:
        SimpleWorker([queue], connection=redis).work(logging_level="WARNING")
    for one in payloads(told.fill or 0):
        queue.enqueue("peer_rq.job", one)
