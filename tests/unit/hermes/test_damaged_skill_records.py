"""Records of Hermes that agents and people may edit: whatever is in them, skills are listed."""

import json

import pytest
from memorybus_hermes.skills import SkillsProvider
from memorybus_providers.base import ProviderConfig, RecallScope


@pytest.mark.parametrize(
    ("record", "job"),
    [
        ({"memorybus": {"at": "soon", "event": 3}}, {}),
        ({"memorybus": {"at": [1]}, "last_used_at": 7, "state": [], "pinned": None}, {}),
        ({"created_at": {}}, {"skill": 7, "skills": 7}),
        ({}, {"skills": {"a": 1}}),
    ],
)
def test_a_record_of_another_form_hides_no_skill(tmp_path, record, job):
    """What is of another type than Hermes writes counts as missing."""
    folder = tmp_path / "skills" / "notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: notes\ndescription: Take notes.\n---\n")
    usage = {"notes": {"created_by": "agent", **record}}
    (tmp_path / "skills" / ".usage.json").write_text(json.dumps(usage))
    (tmp_path / "cron").mkdir()
    (tmp_path / "cron" / "jobs.json").write_text(json.dumps({"jobs": [job]}))
    options = {"hermes_home": str(tmp_path)}
    provider = SkillsProvider(ProviderConfig(name="skills", home=tmp_path / "x", options=options))
    (skill,) = provider.curated(RecallScope(None, None, None))
    assert (skill.name, skill.state, skill.since, skill.used) == ("skill:notes", "active", 0, 0)
