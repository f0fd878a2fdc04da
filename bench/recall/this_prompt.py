"""How much of what is known a block holds for the prompt at hand, topics changing at each prompt.

Over the LoCoMo conversations in ``../shared/data/locomo``, through the bus: each question is asked
once as a prompt of a session that has just been asked something else (`Session.prefetch`), and
once with all the time it needs (`MemoryBus.recall`). The ratio of the evidence found is the figure.
"""

import random
import statistics

from gauge import Figures, LeftOut, Size
from memorybus.agent.client import MemoryBus
from stage import WAIT_SECONDS, Stage, wait_for

from recall.evidence import DATA, Asked, ingest, questions

PROVIDER = "holographic"


def measure(size: Size) -> Figures:
    """Return the share of evidence in both blocks, and their ratio.

    Raises:
        LeftOut: the conversations are not there.
    """
    files = sorted(DATA.glob("*.json"))
    if not files:
        raise LeftOut(f"no LoCoMo files in {DATA.name}; see bench/README.md")
    every = [asked for path in files for asked in questions(path)]
    chosen = random.Random(5).sample(every, min(len(every), size.asked))
    with Stage(providers=(PROVIDER,)) as stage, stage.worker(stage.settings, jobs=1):
        ingest(stage.settings, files)
        stage.await_applied(PROVIDER)
        with MemoryBus.connect(stage.settings) as bus:
            return _asked(bus, chosen)


def _asked(bus: MemoryBus, chosen: list[Asked]) -> Figures:
    sessions = {
        user: bus.session(f"now-{user}", user=user, warm=False)
        for user in {asked.user for asked in chosen}
    }
    first = sessions[chosen[0].user]
    wait_for("the recall process", lambda: first.prefetch(chosen[0].question, wait=2.0) != "")
    now = [_share(asked, sessions[asked.user].prefetch(asked.question)) for asked in chosen]
    warm = []
    for asked in chosen:
        found = bus.recall(
            asked.question, user=asked.user, providers=[PROVIDER], timeout=WAIT_SECONDS
        )
        warm.append(_share(asked, found.text))
    return {
        "this_prompt_evidence": statistics.fmean(now),
        "this_prompt_over_warm": statistics.fmean(now) / statistics.fmean(warm),
        "this_prompt_questions": float(len(chosen)),
    }


def _share(asked: Asked, block: str) -> float:
    return sum(text in block for text in asked.evidence) / len(asked.evidence)
