"""How much of what is known a block holds for the prompt at hand, topics changing at each prompt.

Over the LoCoMo conversations in ``../shared/data/locomo``, through the bus: each question is asked
once as a prompt of a session that has just been asked something else (`Session.prefetch`), and
once with all the time it needs (`MemoryBus.recall`). The ratio of the evidence found is the figure.
"""

import random
import statistics

import msgspec
from gauge import Figures, LeftOut, Size
from memorybus.agent.client import MemoryBus
from recall_lab import PROVIDER, read, share_found
from stage import WAIT_SECONDS, Stage, wait_for

from recall.evidence import LOCOMO, publish


class Question(msgspec.Struct, frozen=True):
    """A question, whose it is, and the texts that answer it."""

    question: str
    user: str
    evidence: list[str]


def measure(size: Size) -> Figures:
    """Return the share of evidence in both blocks, and their ratio.

    Raises:
        LeftOut: the conversations are not there.
    """
    conversations = [read(path) for path in sorted(LOCOMO.glob("*.json"))]
    if not conversations:
        raise LeftOut(f"no LoCoMo files in {LOCOMO.name}; see bench/README.md")
    every = [
        Question(asked.question, one.name, texts)
        for one in conversations
        for asked, texts in one.answerable()
    ]
    chosen = random.Random(5).sample(every, min(len(every), size.asked))
    with (
        Stage(providers=(PROVIDER,)) as stage,
        stage.worker(stage.settings, jobs=1),
        MemoryBus.connect(stage.settings) as bus,
    ):
        publish(bus, conversations)
        stage.await_applied(PROVIDER)
        return _asked(bus, chosen)


def _asked(bus: MemoryBus, chosen: list[Question]) -> Figures:
    sessions = {
        user: bus.session(f"now-{user}", user=user, warm=False)
        for user in {asked.user for asked in chosen}
    }
    first = sessions[chosen[0].user]
    wait_for("the recall process", lambda: first.prefetch(chosen[0].question, wait=2.0) != "")
    now = [
        share_found(sessions[asked.user].prefetch(asked.question), asked.evidence)
        for asked in chosen
    ]
    warm = []
    for asked in chosen:
        found = bus.recall(
            asked.question, user=asked.user, providers=[PROVIDER], timeout=WAIT_SECONDS
        )
        warm.append(share_found(found.text, asked.evidence))
    return {
        "this_prompt_evidence": statistics.fmean(now),
        "this_prompt_over_warm": statistics.fmean(now) / statistics.fmean(warm),
        "this_prompt_questions": float(len(chosen)),
    }
