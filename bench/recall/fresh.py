"""What a prompt waits for an answer that is not warm: many sessions in one agent, one worker.

Turns of 500 persons, a session each, are in `holographic`; then fifty prompts a second come from
all sessions in turn, each a few words of something that session has said, each timed around
`Session.prefetch`. The prompts are sent on time whether or not the ones before have their answer.
"""

import random
import threading
import time
from collections.abc import Sequence

from filling import Filler, spread
from gauge import Figures, Size, p50, p99
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from stage import Stage, wait_for
from texts import turns

PROVIDER = "holographic"
PERSONS = 500
PER_SECOND = 50
_WORDS = 8
_TEXTS = 1_000
_WARMED_SESSIONS = 50


def measure(size: Size) -> Figures:
    """Return milliseconds, and the share of prompts that had no answer in time."""
    with Stage(providers=(PROVIDER,)) as stage:
        names = spread(stage.settings.partitions, PERSONS)
        Filler(stage, names, texts=_TEXTS).fill(size.prompted)
        with (
            stage.worker(stage.settings, jobs=1),
            MemoryBus.connect(stage.settings) as bus,
        ):
            stage.await_applied(PROVIDER)
            sessions = [bus.session(n, user=f"user-of-{n}", warm=False) for n in names]
            prompts = _prompts(size.prompts)
            wait_for("the recall process", lambda: sessions[0].prefetch(prompts[0], wait=2.0) != "")
            _paced(sessions, prompts[:_WARMED_SESSIONS])
            spent, empty = _paced(sessions, prompts)
    return {
        "fresh_p50_ms": p50(spent),
        "fresh_p99_ms": p99(spent),
        "fresh_without_answer_percent": 100 * empty / len(spent),
        "fresh_turns": float(size.prompted),
    }


def _prompts(count: int) -> list[str]:
    """Return prompts, each a few words of what its session has said.

    The filler gives the n-th session the n-th text, and again when the sessions come round.
    """
    rng = random.Random(3)
    said = [turn.user.split() for turn in turns(_TEXTS)]
    own = (said[number % PERSONS] for number in range(count))
    return [" ".join(rng.sample(words, min(_WORDS, len(words)))) for words in own]


def _paced(sessions: Sequence[Session], prompts: Sequence[str]) -> tuple[list[float], int]:
    """Send prompts at their times; return the milliseconds of each, and how many got nothing."""
    spent: list[float] = []
    empty: list[int] = []

    def send(session: Session, prompt: str) -> None:
        began = time.perf_counter()
        block = session.prefetch(prompt)
        spent.append((time.perf_counter() - began) * 1_000)
        if not block:
            empty.append(1)

    threads = []
    began = time.perf_counter()
    for number, prompt in enumerate(prompts):
        time.sleep(max(0.0, began + number / PER_SECOND - time.perf_counter()))
        threads.append(threading.Thread(target=send, args=(sessions[number % PERSONS], prompt)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return spent, len(empty)
