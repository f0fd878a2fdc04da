"""Our insights of a reconciled state.db are Hermes's own, figure by figure."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers.hermes.hermes_agent import PYTHON
from memorybus.clock import SYSTEM
from memorybus.insights.reading import read_insights
from memorybus.insights.report import Insights
from memorybus_hermes.home import HermesHome
from memorybus_hermes.reconcile.reconcile import ReconcileRequest, Reconciliation

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.releases,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Hermes Agent: run make hermes-venv"),
]

_STORY = """
import json, sys, time
from pathlib import Path
from hermes_state import SessionDB
from agent.insights import InsightsEngine

db = SessionDB(Path(sys.argv[1]))

def turn(session, number, tools=()):
    db.append_message(session, "user", f"{session} asks {number}")
    for tool, arguments in tools:
        call = {"id": f"c{number}{tool}", "type": "function",
                "function": {"name": tool, "arguments": json.dumps(arguments)}}
        db.append_message(session, "assistant", "", tool_calls=[call])
        db.append_message(session, "tool", "done", tool_name=tool, tool_call_id=call["id"])
    db.append_message(session, "assistant", f"{session} answers {number}")

def spend(session, model, tokens, **cost):
    db.update_token_counts(session, input_tokens=tokens, output_tokens=tokens // 10,
                           cache_read_tokens=1000, model=model, billing_provider="p",
                           api_call_count=1, **cost)

for session, source, model in (("s1", "cli", "large"), ("s2", "telegram", "small"),
                               ("s3", "cli", "large")):
    db.create_session(session, source, model=model, user_id="ann" if source != "cli" else None)
    turn(session, 1, [("terminal", {}), ("skill_view", {"name": "tidy"})])
    turn(session, 2, [("skill_manage", {"action": "patch", "name": "tidy"})])
    turn(session, 3)
    spend(session, model, 300)
    spend(session, "other", 70, estimated_cost_usd=0.25, cost_status="estimated",
          cost_source="official_docs_snapshot")
db.record_auxiliary_usage("s1", "title_generation", model="tiny", input_tokens=99)
for session in ("s1", "s2", "s3"):
    db.end_session(session, "user_exit")
flush = getattr(db, "flush_token_counts", None)
if flush:
    flush()
engine = InsightsEngine(db)
told = {name: engine.generate(30, source=source) for name, source in
        (("all", None), ("cli", "cli"), ("telegram", "telegram"))}
db.close()
print(json.dumps(told, default=str))
"""


class Silent:
    """Shows no progress."""

    def begin_stage(self, what: str, total: int) -> None:
        """Show nothing."""

    def advance(self, count: int) -> None:
        """Show nothing."""

    def show_waiting(self, unsent: int) -> None:
        """Show nothing."""


@pytest.fixture(name="compared")
def _compared(tmp_path: Path, settings) -> tuple[dict[str, Any], dict[str, Insights]]:
    """Return Hermes's figures and ours, by platform."""
    done = subprocess.run(
        [PYTHON, "-c", _STORY, tmp_path / "state.db"],
        env={"HERMES_HOME": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin",
             "TZ": "UTC"},
        check=True,
        capture_output=True,
        timeout=60,
    )  # fmt: skip
    hermes = json.loads(done.stdout.splitlines()[-1])
    request = ReconcileRequest(apply=True, settle=0)
    report = Reconciliation(
        HermesHome(tmp_path, "coder"), settings, request, SYSTEM, Silent()
    ).run()
    assert report.published == 9
    ours = {
        name: read_insights(settings, platform=None if name == "all" else name, zone="UTC")
        for name in hermes
    }
    return hermes, ours


@pytest.mark.parametrize("platform", ["all", "cli", "telegram"])
def test_every_figure_is_that_of_hermes(compared, platform):
    """Totals, models, platforms, tools, skills and activity of all, and of each platform."""
    theirs, ours = compared[0][platform], compared[1][platform]
    overview, total = ours.overview, theirs["overview"]
    assert {
        "total_sessions": overview.sessions,
        "total_messages": overview.messages,
        "user_messages": overview.user_messages,
        "assistant_messages": overview.assistant_messages,
        "tool_messages": overview.tool_messages,
        "total_tool_calls": overview.tool_calls,
        "total_tokens": overview.tokens_in + overview.tokens_out,
        "total_output_tokens": overview.tokens_out,
    }.items() <= total.items()
    assert overview.cost == pytest.approx(total["estimated_cost"])
    assert overview.hours == pytest.approx(total["total_hours"], abs=0.001)
    assert {model.name: (model.sessions, model.tokens_in + model.tokens_out)
            for model in ours.models} == {
        model["model"]: (model["sessions"], model["total_tokens"]) for model in theirs["models"]
    }  # fmt: skip
    assert {each.name: (each.sessions, each.messages, each.tool_calls)
            for each in ours.platforms} == {
        each["platform"]: (each["sessions"], each["messages"], each["tool_calls"])
        for each in theirs["platforms"]
    }  # fmt: skip
    assert {tool.tool: (tool.calls, round(tool.share * 100, 6)) for tool in ours.tools} == {
        tool["tool"]: (tool["count"], round(tool["percentage"], 6)) for tool in theirs["tools"]
    }
    assert {skill.skill: (skill.loads, skill.edits) for skill in ours.skills} == {
        skill["skill"]: (skill["view_count"], skill["manage_count"])
        for skill in theirs["skills"]["top_skills"]
    }
    activity = theirs["activity"]
    days = [sum(hours) for hours in ours.activity.sessions]
    assert days == [day["count"] for day in activity["by_day"]]
    hours = [sum(column) for column in zip(*ours.activity.sessions, strict=True)]
    assert hours == [hour["count"] for hour in activity["by_hour"]]
    assert (ours.activity.active_days, ours.activity.streak) == (
        activity["active_days"], activity["max_streak"],
    )  # fmt: skip
