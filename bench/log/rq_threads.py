"""What one would use instead, on the same server in the same run: RQ, threads, bare XADD.

- RQ: ``queue.enqueue`` of the encoded turn, and a SimpleWorker (no fork per job) that runs a
  function which does nothing; every option at its default, pickle included.
- a thread per event: ``threading.Thread(target=…).start()``, and ``ThreadPoolExecutor(1).submit``,
  which is what an agent does that calls its memory in the background. Nothing durable.
"""

import argparse
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from gauge import US, Figures, Size, medians, p50, p99, timed
from memorybus.agent.client import MemoryBus
from redis import Redis
from stage import WAIT_SECONDS, Agent, Stage, environment
from texts import turns

_JOBS = 500
_QUEUE = "bench-rq"


def nothing(body: bytes) -> None:
    """Run a job: do nothing."""


def measure(size: Size) -> Figures:
    """Return peers' figures and ratios."""
    from apply.drain import NOOP, drain_seconds

    with Stage() as stage:
        with MemoryBus.connect(stage.settings) as bus:
            runs = [_emit(stage, Agent(bus, f"run{n}"), n) for n in range(size.runs)]
        bus_rate = sum(stage.heads().values()) / drain_seconds(stage, "noop", NOOP)
        rq_rate = runs[-1].pop("rq_jobs") / _work(stage)
        for run in runs[:-1]:
            run.pop("rq_jobs")
        return medians(runs) | {
            "rq_simple_worker_drain_per_s": rq_rate,
            "drain_noop_over_rq_simple_worker": bus_rate / rq_rate,
        }


def _emit(stage: Stage, agent: Agent, seed: int) -> Figures:
    from rq import Queue

    fresh = list(turns(_JOBS, seed))
    bodies = [agent.encoded(turn) for turn in fresh]
    stage.redis.delete(f"rq:queue:{_QUEUE}")
    queue = Queue(_QUEUE, connection=stage.redis)
    threads: list[threading.Thread] = []

    def thread(body: bytes) -> None:
        threads.append(threading.Thread(target=nothing, args=(body,)))
        threads[-1].start()

    publish = timed(agent.publish, fresh)
    agent.flush()
    enqueue = timed(lambda body: queue.enqueue("log.rq_threads.nothing", body), bodies)
    xadd = timed(lambda body: stage.redis.xadd("bench:xadd", {"e": body}), bodies)
    started = timed(thread, bodies)
    for one in threads:
        one.join()
    with ThreadPoolExecutor(1) as pool:
        submitted = timed(lambda body: pool.submit(nothing, body), bodies)
    return {
        "publish_p50_over_rq_enqueue": p50(publish) / p50(enqueue),
        "publish_p99_over_rq_enqueue_p99": p99(publish) / p99(enqueue),
        "publish_p50_over_thread_per_event": p50(publish) / p50(started),
        "publish_p50_over_executor_submit": p50(publish) / p50(submitted),
        "rq_enqueue_p50_us": p50(enqueue) / US,
        "peer_xadd_p50_us": p50(xadd) / US,
        "thread_per_event_p50_us": p50(started) / US,
        "executor_submit_p50_us": p50(submitted) / US,
        "rq_jobs": float(queue.count),
    }


def _work(stage: Stage) -> float:
    """Return the seconds a SimpleWorker process needs for the queue, its start-up left out."""
    command = [sys.executable, "-m", "log.rq_threads", str(stage.settings.socket_path)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, timeout=WAIT_SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"RQ's worker failed: {done.stderr.decode()[-500:]}")
    return float(done.stdout)


def main() -> None:
    """Run RQ's worker until the queue is empty and print the seconds it took."""
    from rq import Queue, SimpleWorker

    parser = argparse.ArgumentParser(description="work off the RQ queue of the benchmark")
    parser.add_argument("socket")
    redis = Redis(unix_socket_path=parser.parse_args().socket)
    worker = SimpleWorker([Queue(_QUEUE, connection=redis)], connection=redis)
    began = time.perf_counter()
    worker.work(burst=True, logging_level="WARNING")
    sys.stdout.write(str(time.perf_counter() - began))


if __name__ == "__main__":
    main()
