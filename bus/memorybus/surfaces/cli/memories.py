"""Commands about memories: ingest and recall."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.text import Text

from memorybus.client import MemoryBus
from memorybus.surfaces import ingest
from memorybus.surfaces.cli.ingesting import ingest_all
from memorybus.surfaces.cli.options import DEFAULT, MEMORIES, Common
from memorybus.surfaces.output import Output
from memorybus.surfaces.render import grid
from memorybus.surfaces.safe import visible
from memorybus.surfaces.transcripts.times import iso

User = Annotated[str | None, Parameter(help="The person.")]
Agent = Annotated[str | None, Parameter(help="The agent's identity.")]


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_ingest, name="ingest", group=MEMORIES)
    app.command(run_recall, name="recall", group=MEMORIES)


def run_ingest(
    *files: Path, user: User = None, agent: Agent = None, common: Common = DEFAULT
) -> int:
    """Publish recorded conversations: OpenAI-style message JSONL, or LoCoMo JSON.

    The same file twice adds nothing. A file that cannot be read whole is reported and the others
    go on (exit code 1). Without --user, LoCoMo's user is `speaker_a`.

    For example:

    - `memorybus ingest chat.jsonl --user ana`
    - `memorybus ingest conversations/*.json`
    """
    output = common.output()
    if not files:
        output.note("ingest: name at least one FILE; see: memorybus ingest --help", "red")
        return 2
    report = ingest_all(common.settings(), files, user, agent, output)
    _show_report(output, report)
    return 1 if report.refused else 0


def _show_report(output: Output, report: ingest.Report) -> None:
    for refusal in report.refused:
        output.note(_refusal(refusal), "red")
    if report.level == "spooled":
        output.note(
            "Redis is down: the events are spooled on this disk and will be sent by the next "
            "`memorybus up` or agent",
            "yellow",
        )
    if output.json:
        output.result(report)
        return
    new = "" if report.new_events is None else f", {report.new_events} events new in the log"
    output.show(
        f"{report.files} files, {report.sessions} sessions, {report.turns} turns published{new}"
    )
    if report.skipped:
        output.show(f"{report.skipped} messages without content were left out")


def _refusal(refusal: ingest.Refused) -> str:
    said = refusal.why
    return said if said.startswith(refusal.what) else f"{refusal.what}: {said}"


def run_recall(
    question: str,
    *,
    user: User = None,
    agent: Agent = None,
    session: Annotated[str | None, Parameter(help="Only as this session would ask.")] = None,
    provider: Annotated[str | None, Parameter(help="Only this provider; several by comma.")] = None,
    budget: Annotated[int | None, Parameter(help="Characters of text at most.")] = None,
    timeout: Annotated[float, Parameter(help="Seconds to wait for the answer.")] = 10.0,
    common: Common = DEFAULT,
) -> int:
    """Ask what is remembered. Without --user: everyone's memories, for the operator.

    For example:

    - `memorybus recall "When does the inspector come?" --user ana`
    - `memorybus recall grease --provider holographic --budget 500 --json`
    """
    output = common.output()
    chosen = tuple(p.strip() for p in provider.split(",") if p.strip()) if provider else None
    with MemoryBus.connect(common.settings()) as bus:
        found = bus.recall(
            question,
            agent=agent,
            user=user,
            session=session,
            providers=chosen,
            budget=budget,
            timeout=timeout,
        )
    for name, reason in found.missing.items():
        output.note(f"{name} did not answer: {reason}", "yellow")
    results = [
        {"provider": one.provider, "text": one.text, "session": one.session, "at": iso(one.at)}
        for one in found.results
    ]
    if output.json:
        output.result({"text": found.text, "results": results})
    else:
        _show_results(output, results)
    return 1 if found.missing and not found.results else 0


def _show_results(output: Output, results: list[dict[str, str | None]]) -> None:
    if not results:
        output.note("nothing is remembered about that")
        return
    table = grid("provider", "when", "session", "text")
    for one in results:
        cells = (one["provider"], one["at"], one["session"], one["text"])
        table.add_row(*(Text(visible(cell or "-")) for cell in cells))
    output.show(table)
