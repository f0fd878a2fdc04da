"""How much of the evidence recall finds, through the whole bus, on the LoCoMo conversations.

``python bench/recall/evidence.py [--data DIRECTORY] [--sample N]``. An embedded Redis in a
temporary directory, a real worker with its recall process, ``memorybus ingest`` of all files as a
process of its own; then each question of categories 1 to 4 is asked through `MemoryBus.recall` as
the first speaker's, one provider at a time, with 1,000, 2,000 and 4,000 characters for the whole
block, its fence included. An utterance that the file names as evidence counts as found if its text,
escaped as the fence escapes it, stands verbatim in the block. Prints the mean share found and
writes ``bench/out/recall.json``. Exit codes: 0 measured, 1 failed, 2 no data.
"""

import argparse
import json
import logging
import random
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from gauge import p50
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings, to_environ
from memorybus.text.fence import escape
from rich.console import Console
from rich.progress import track
from rich.table import Table
from stage import ROOT, WAIT_SECONDS, Stage

DATA = ROOT.parent / "shared" / "data" / "locomo"
OUT = ROOT / "bench" / "out" / "recall.json"
BUDGETS = (1_000, 2_000, 4_000)
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""Category 5 asks for what was never said; it has no evidence to find."""

_SEED = 11


class Asked(msgspec.Struct, frozen=True):
    """A question, whose it is, and the texts of the utterances that answer it."""

    question: str
    user: str
    category: int
    evidence: tuple[str, ...]


class Answer(msgspec.Struct, frozen=True):
    """What one recall brought: the share of evidence found, and how long it took."""

    provider: str
    budget: int
    category: int
    share: float
    ms: float


def questions(path: Path) -> list[Asked]:
    """Read a file's questions; evidence ids that the file does not have are its own mistakes."""
    sample = json.loads(path.read_text())
    body = sample.get("conversation", sample)
    said = {
        one["dia_id"]: one["text"]
        for key, session in body.items()
        if re.fullmatch(r"session_\d+", key)
        for one in session
    }
    found = []
    for qa in sample["qa"]:
        ids = re.findall(r"D\d+:\d+", " ".join(qa["evidence"]))
        texts = tuple(escape(said[name]) for name in ids if name in said)
        if qa["category"] in CATEGORIES and texts:
            found.append(Asked(qa["question"], body["speaker_a"], qa["category"], texts))
    return found


def ingest(settings: Settings, files: Sequence[Path]) -> None:
    """Ingest as a user does: ``memorybus ingest FILE…``."""
    command = [sys.executable, "-m", "memorybus.surfaces.cli", "ingest", "--json"]
    subprocess.run(
        [*command, *map(str, files)],
        env=to_environ(settings),
        check=True,
        timeout=WAIT_SECONDS,
        stdout=subprocess.DEVNULL,
    )


def ask(bus: MemoryBus, asked: Asked, provider: str, budget: int) -> Answer:
    """Ask one provider one question."""
    began = time.perf_counter()
    recalled = bus.recall(
        asked.question, user=asked.user, providers=[provider], budget=budget, timeout=WAIT_SECONDS
    )
    spent = (time.perf_counter() - began) * 1_000
    if recalled.missing:
        raise RuntimeError(f"{provider} did not answer {asked.question!r}: {recalled.missing}")
    found = sum(text in recalled.text for text in asked.evidence)
    return Answer(provider, budget, asked.category, found / len(asked.evidence), spent)


def measure(files: Sequence[Path], sample: int | None, console: Console) -> list[Answer]:
    """Ingest everything, then ask everything."""
    every = [asked for path in files for asked in questions(path)]
    if sample is not None and sample < len(every):
        every = random.Random(_SEED).sample(every, sample)
    with Stage() as stage, stage.worker(stage.settings, jobs=1):
        ingest(stage.settings, files)
        for provider in stage.settings.providers:
            stage.await_applied(provider)
        with MemoryBus.connect(stage.settings) as bus:
            return [
                ask(bus, asked, provider, budget)
                for asked in track(every, "asking", console=console, transient=True)
                for provider in stage.settings.providers
                for budget in BUDGETS
            ]


def shares(answers: Sequence[Answer]) -> dict[str, float]:
    """Return the mean share by provider and budget, overall and by category."""
    grouped: dict[str, list[float]] = defaultdict(list)
    for one in answers:
        grouped[f"{one.provider}_{one.budget}"].append(one.share)
        grouped[f"{one.provider}_{one.budget}_category_{one.category}"].append(one.share)
    return {key: statistics.fmean(values) for key, values in grouped.items()}


def table(answers: Sequence[Answer]) -> Table:
    """Return what is printed."""
    means = shares(answers)
    shown = Table("provider", "questions", *(f"{b:,}" for b in BUDGETS), "recall p50 ms")
    shown.title = "mean share of evidence found within a block of so many characters"
    for provider in dict.fromkeys(one.provider for one in answers):
        mine = [one for one in answers if one.provider == provider]
        for category in (None, *CATEGORIES):
            some = [one for one in mine if category in (None, one.category)]
            if not some:
                continue
            suffix = "" if category is None else f"_category_{category}"
            shown.add_row(
                provider if category is None else f"  {CATEGORIES[category]}",
                str(len(some) // len(BUDGETS)),
                *(f"{means[f'{provider}_{budget}{suffix}']:.3f}" for budget in BUDGETS),
                f"{p50([one.ms for one in some]):.1f}",
            )
    return shown


def main() -> int:
    """Parse the arguments, measure, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="directory of LoCoMo JSON files")
    parser.add_argument("--sample", type=int, help="ask only so many questions, always the same")
    options = parser.parse_args()
    console = Console()
    logging.basicConfig(level=logging.ERROR)
    files = sorted(options.data.glob("*.json"))
    if not files:
        console.print(f"no LoCoMo files in {options.data}; name their directory with --data")
        return 2
    began = time.perf_counter()
    answers = measure(files, options.sample, console)
    console.print(table(answers))
    if not any(one.share for one in answers if one.provider == "builtin"):
        console.print(
            "builtin keeps what agents write into their two memory stores, not turns; these "
            "conversations have no such writes, so it has nothing to recall."
        )
    means = shares(answers)
    OUT.parent.mkdir(exist_ok=True)
    providers = {one.provider for one in answers}
    counted = {"questions": float(len(answers) // (len(BUDGETS) * len(providers)))}
    seconds = {"seconds": time.perf_counter() - began}
    OUT.write_text(json.dumps(means | counted | seconds, indent=1) + "\n")
    console.print(f"written: {OUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
