"""Skills that the real Hermes keeps: it reads what we write, and we what it writes."""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from helpers.hermes.hermes_agent import PYTHON
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.events import MemoryCurated, Position, Scope, SessionRef
from memorybus.ids import derived_id
from memorybus_hermes.skills import SkillsProvider
from memorybus_providers.base import HookContext, ProviderConfig, RecallScope, StoredMemory
from memorybus_workers.curating.transitions import CuratedMemory, transitions

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.releases,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Hermes Agent: run make hermes-venv"),
]

DAY_MS = 86_400_000
NAMES = ("git-notes", "pdf-forms", "weather")
EVERYBODY = RecallScope(None, None, None)

_MAKE = """
import json, sys
from tools import skill_usage
from tools.skill_manager_tool import skill_manage
for name in ("git-notes", "pdf-forms", "weather", "by-a-person"):
    text = f"---\\nname: {name}\\ndescription: How to do {name}.\\n---\\nFirst look.\\n"
    category = "work" if name == "git-notes" else None
    done = json.loads(skill_manage(action="create", name=name, content=text, category=category))
    assert done["success"], done
    skill_usage.bump_view(name)
    if name != "by-a-person":
        skill_usage.mark_agent_created(name)
from cron.jobs import create_job
create_job(prompt="the weather", schedule="every 1h", skills=["weather"])
print("null")
"""
_LOOK = """
import json
from tools import skill_usage
report = getattr(skill_usage, "curated_report", None) or skill_usage.agent_created_report
archived = getattr(skill_usage, "list_archived_skill_names", lambda: [])()
print(json.dumps({row["name"]: ("pinned " if row["pinned"] else "") + row["state"]
                  for row in report()} | {name: "archived" for name in archived}))
"""
_AGE = """
import json
from datetime import datetime, timedelta, timezone
from agent.curator import apply_automatic_transitions
print(json.dumps(apply_automatic_transitions(datetime.now(timezone.utc) + timedelta(days=400))))
"""


class Hermes:
    """The skills of a home, as Hermes and as our provider have them."""

    def __init__(self, home: Path, place: Path) -> None:
        self.home = home
        self.run(_MAKE)
        options = {"hermes_home": str(home)}
        self.provider = SkillsProvider(ProviderConfig(name="skills", home=place, options=options))
        self.provider.open()
        self._events = 0

    def run(self, code: str) -> Any:
        """Run code in Hermes's Python; return what it prints last."""
        told = {"HERMES_HOME": str(self.home), "HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [PYTHON, "-c", code], env=told, check=False, capture_output=True, text=True, timeout=90
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def call(self, function: str, name: str) -> Any:
        """Call a function of Hermes's record of use with a skill."""
        return self.run(
            f"import json; from tools import skill_usage; print(json.dumps("
            f"skill_usage.{function}({name!r})))"
        )

    def backdate(self, days: float) -> None:
        """Let all use lie some days further in the past."""
        path = self.home / "skills" / ".usage.json"
        usage = json.loads(path.read_text())
        for record in usage.values():
            for name in ("created_at", "last_used_at", "last_viewed_at", "last_patched_at"):
                if record.get(name):
                    at = datetime.fromisoformat(record[name]).timestamp() - days * 86_400
                    record[name] = datetime.fromtimestamp(at, UTC).isoformat()
        path.write_text(json.dumps(usage))

    def switch_off_its_curator(self) -> None:
        """Write what switches Hermes's curator off."""
        (self.home / "config.yaml").write_text("curator:\n  enabled: false\n")

    def kept(self) -> dict[str, StoredMemory]:
        """Return the skills that our provider lists, by name."""
        return {kept.name.removeprefix("skill:"): kept for kept in self.provider.curated(EVERYBODY)}

    def states(self) -> dict[str, str]:
        """Return their states."""
        return {name: kept.state for name, kept in self.kept().items()}

    def age(self, days: float = 0.0) -> dict[str, str]:
        """Apply what the curator decides so many days from now; return the changes."""
        now = SYSTEM.now_ms() + round(days * DAY_MS)
        memories = [
            CuratedMemory(
                *(kept.name, Scope(kept.agent, "", ""), kept.text, kept.at, kept.state),
                *(kept.since, kept.used, kept.successor, kept.ages),
            )
            for kept in self.kept().values()
        ]
        changes = transitions(memories, now, Settings())
        for change in changes:
            self.curate(change.memory.name, change.after, change.at(now))
        return {change.memory.name.removeprefix("skill:"): change.after for change in changes}

    def curate(self, skill: str, after: Any, at: int | None = None) -> None:
        """Apply an event of the curator, twice, as after a crash."""
        self._events += 1
        now = SYSTEM.now_ms() if at is None else at
        event = MemoryCurated(memory=skill, before="active", after=after)
        ctx = HookContext(
            *(Scope("default", "", ""), SessionRef("c", "c"), derived_id("c", str(self._events))),
            *(Position(0, "1-0", 1), now, 5.0),
        )
        self.provider.on_memory_curated(event, ctx)
        self.provider.on_memory_curated(event, ctx)


@pytest.fixture(name="hermes")
def _hermes(tmp_path):
    """Three skills of an agent and one of a person, all used a moment ago."""
    home = tmp_path / ".hermes"
    home.mkdir()
    return Hermes(home, tmp_path)


def test_hermes_ages_skills_while_its_own_curator_is_on(hermes):
    """By default we list the skills of the agent alone, and change none by age."""
    assert hermes.states() == dict.fromkeys(NAMES, "active")
    assert hermes.kept()["pdf-forms"].text == "pdf-forms: How to do pdf-forms."

    hermes.backdate(200)
    assert hermes.age() == {}

    hermes.switch_off_its_curator()
    assert hermes.age() == {"git-notes": "stale", "pdf-forms": "stale"}


def test_skills_age_as_memories_do_and_hermes_sees_it(hermes):
    """Active, stale, archived, back by use and by Hermes's restore; a scheduled one is in use."""
    hermes.switch_off_its_curator()
    hermes.backdate(40)
    assert set(hermes.age().values()) == {"stale"}
    assert hermes.run(_LOOK) == {"git-notes": "stale", "pdf-forms": "stale", "weather": "active"}

    hermes.call("bump_use", "pdf-forms")
    hermes.backdate(0)
    assert hermes.age() == {"pdf-forms": "active"}
    assert hermes.age(days=61)["git-notes"] == "archived"
    assert hermes.run(_LOOK)["git-notes"] == "archived"
    assert hermes.states()["git-notes"] == "archived"
    assert not (hermes.home / "skills" / "work" / "git-notes").exists()

    assert hermes.call("restore_skill", "git-notes")[0]
    assert hermes.states()["git-notes"] == "active"


def test_what_is_pinned_or_taken_back_here_is_so_in_hermes(hermes):
    """Hermes's curator leaves a pin of ours alone, and we give back what it archived."""
    hermes.curate("skill:pdf-forms", "pinned")
    hermes.run(_AGE)
    assert hermes.states() == {
        "git-notes": "archived",
        "pdf-forms": "pinned",
        "weather": "active",
    }

    hermes.curate("skill:git-notes", "active")
    assert hermes.run(_LOOK) == {
        "git-notes": "active",
        "pdf-forms": "pinned active",
        "weather": "active",
    }
    hermes.curate("skill:pdf-forms", "active")
    assert hermes.run(_LOOK)["pdf-forms"] == "active"


def test_an_event_names_no_path_and_no_skill_of_a_person(hermes):
    """Ids that are no skill of the agent, and older changes, touch nothing."""
    hermes.curate("skill:pdf-forms", "stale", 2_000)
    before = {path: path.read_bytes() for path in hermes.home.rglob("*") if path.is_file()}

    for name in ("skill:../../memories", "skill:by-a-person", "pdf-forms", "skill:", "skill:none"):
        hermes.curate(name, "archived")
    hermes.curate("skill:pdf-forms", "archived", 1_000)
    after = {path: path.read_bytes() for path in hermes.home.rglob("*") if path.is_file()}
    assert after == before
