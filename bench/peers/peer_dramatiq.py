"""dramatiq with 8 threads; its worker is `dramatiq peer_dramatiq`."""

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from work import URL, Handler, Payload, command, payloads

dramatiq.set_broker(RedisBroker(url=URL))
handler = Handler()


@dramatiq.actor(actor_name="job")
def job(payload: Payload) -> None:
    """Handle one."""
    handler.run(payload)


if __name__ == "__main__":
    for one in payloads(command().fill or 0):
        job.send(one)
