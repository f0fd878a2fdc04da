"""huey with worker threads; its worker is `huey_consumer peer_huey.queue`."""

from huey import RedisHuey
from work import URL, Handler, Payload, command, payloads

queue = RedisHuey("peer", url=URL, results=False)
handler = Handler()


@queue.task(name="job")
def job(payload: Payload) -> None:
    """Handle one."""
    handler.run(payload)


if __name__ == "__main__":
    import peer_huey  # the worker knows the task by this name, not as ``__main__.job``

    for one in payloads(command().fill or 0):
        peer_huey.job(one)
