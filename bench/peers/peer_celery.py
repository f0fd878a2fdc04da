"""Celery with threads, results ignored; its worker is `celery -A peer_celery worker`."""

from celery import Celery
from work import URL, Handler, Payload, command, payloads

app = Celery("peer_celery", broker=URL)
app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False)
handler = Handler()


@app.task(name="job")
def job(payload: Payload) -> None:
    """Handle one."""
    handler.run(payload)


if __name__ == "__main__":
    for one in payloads(command().fill or 0):
        job.delay(one)
