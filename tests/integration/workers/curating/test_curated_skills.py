"""Skills of a Hermes agent on a running bus: listed, aged, pinned, taken back, and killed -9."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.stories.curated_bus import DAY_MS, NAME, SURE, CuratedBus, ShiftedClock
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import environ, worker
from memorybus.clock import SYSTEM
from memorybus_console.actions.curation import PinMemory, RunCurator, UndoCuration
from memorybus_console.operations.curation import read_report, read_status
from memorybus_workers.curating.curator import Curator

pytestmark = pytest.mark.timeout(300)

IDS = ("skill:git-notes", "skill:pdf-forms")


def write_home(home: Path, days: float) -> None:
    """Write skills as Hermes 0.22 keeps them, last used so many days ago; its curator is off."""
    at = datetime.fromtimestamp((SYSTEM.now_ms() - days * DAY_MS) / 1000, UTC).isoformat()
    for skill in IDS:
        folder = home / "skills" / skill.removeprefix("skill:")
        folder.mkdir(parents=True)
        text = f"---\nname: {folder.name}\ndescription: How to do {folder.name}.\n---\nLook.\n"
        (folder / "SKILL.md").write_text(text)
    record = {"created_by": "agent", "created_at": at, "last_used_at": at, "use_count": 1}
    usage = {skill.removeprefix("skill:"): record for skill in IDS}
    (home / "skills" / ".usage.json").write_text(json.dumps(usage))
    (home / "config.yaml").write_text("curator:\n  enabled: false\n")


@pytest.fixture
def bus(
    redis_url: str, redis_client: redis.Redis, make_settings: MakeSettings, tmp_path: Path
) -> CuratedBus:
    """Return a bus with a home that has two skills, unused for 40 days; no worker runs yet."""
    write_home(tmp_path / ".hermes", 40)
    table = {"kind": "hermes-skills", "hermes_home": str(tmp_path / ".hermes")}
    settings = make_settings(
        url=redis_url, providers=(NAME, "skills"), provider={"skills": table}, **SURE
    )
    return CuratedBus(settings, redis_client)


@pytest.fixture
def working(bus: CuratedBus, spawn: Spawn) -> Iterator[CuratedBus]:
    """Return the bus with a worker."""
    child = worker(spawn, bus.settings, jobs=1)
    yield bus
    assert child.terminate() == 0


def listed(bus: CuratedBus) -> dict[str, str]:
    """Return the states of the skills as `curator status` lists them."""
    return {line.skill: line.state for line in read_status(bus.settings).skills}


def test_skills_are_listed_aged_pinned_and_taken_back(working, spawn):
    """One run archives what is old and not pinned; undo brings the directory back."""
    skills = Path(working.settings.provider_options("skills")["hermes_home"]) / "skills"
    assert listed(working) == dict.fromkeys(IDS, "active")
    working.act(PinMemory(memory=IDS[1], reason="for the taxes"))
    run = working.act(RunCurator())
    assert [(line.memory, line.agent, line.change) for line in run.changes] == [
        (IDS[0], "default", "active → stale")
    ]

    archiving = working.act(RunCurator(), days=61)
    assert read_report(working.settings).changes == archiving.changes
    assert listed(working) == {IDS[0]: "archived", IDS[1]: "pinned"}
    assert (skills / ".archive" / "git-notes" / "SKILL.md").is_file()

    working.act(UndoCuration(run=archiving.run))
    assert listed(working) == {IDS[0]: "stale", IDS[1]: "pinned"}
    assert (skills / "git-notes" / "SKILL.md").is_file()
    reasons = [(event.memory, event.after, event.reason) for event in working.events()]
    assert reasons[0] == (IDS[1], "pinned", "for the taxes")
    assert len(reasons) == 4
    assert ran(spawn, working.settings, "memories", "people")["people"] == []


def test_a_worker_killed_between_moving_and_noting_moves_once(bus, spawn):
    """After kill -9 the next worker notes the state of the skill that was moved already."""
    skills = Path(bus.settings.provider_options("skills")["hermes_home"]) / "skills"
    child = worker(spawn, bus.settings, jobs=1)
    bus.act(RunCurator())
    assert child.terminate() == 0
    settings = environ(bus.settings) | {"MEMORYBUS_CRASH_AT": "skills.moved"}
    dying = spawn("-m", "memorybus_workers", "worker", "--jobs", "1", env=settings)
    dying.wait_output('"ready":true')
    with closing(Curator(bus.settings, ShiftedClock(61))) as curator:
        curator.run("ops")
    assert dying.wait(60) == -9
    moved = [path.name for path in (skills / ".archive").iterdir()]
    assert len(moved) == 1

    child = worker(spawn, bus.settings, jobs=1)
    wait_until(lambda: set(listed(bus).values()) == {"archived"}, "both are archived", 60)
    usage = json.loads((skills / ".usage.json").read_text())
    assert [usage[name]["state"] for name in sorted(usage)] == ["archived", "archived"]
    assert sorted(path.name for path in (skills / ".archive").iterdir()) == sorted(usage)
    assert child.terminate() == 0
