"""``memorybus ingest``: publish recorded conversations and what other memories exported."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from cyclopts import App, Parameter

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, MEMORIES, Common, FlagOption
from memorybus_console.cli.progress import note_on_interrupt, show_stage
from memorybus_console.cli.scope_options import AgentOption, UserOption
from memorybus_console.result import Prints
from memorybus_console.views.output import Output

if TYPE_CHECKING:
    from memorybus.config.settings import Settings

    from memorybus_console.operations.ingest.report import IngestReport, OnStage

SourceName = Literal["mem0", "hindsight", "honcho", "mentisdb", "zep", "letta", "memorybus"]
SourceOption = Annotated[
    SourceName | None, Parameter(name="--from", help="The system FILE was exported from.")
]

UserFromNameOption = Annotated[
    FlagOption, Parameter(help="Each named speaker is a person with memories of their own.")
]

_INTERRUPTED = "interrupted: what was published stays; the same command publishes the rest"


class _Owner(TypedDict):
    user: str | None
    agent: str | None
    user_from_name: bool


def register(app: App) -> None:
    """Add the command."""
    app.command(run_ingest, name="ingest", group=MEMORIES)


@shown
def run_ingest(
    *files: str,
    user: UserOption = None,
    user_from_name: UserFromNameOption = False,
    agent: AgentOption = None,
    source: SourceOption = None,
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(IngestReport)]":
    """Publish recorded conversations, or exported events.

    Conversations are JSON, a message or a conversation on each line, or one document: messages of
    OpenAI, Anthropic, Gemini, LangChain and ShareGPT, exports of ChatGPT and claude.ai, LoCoMo. The
    file may be compressed with gzip. Ingesting a file again adds nothing, also if it was cut,
    renamed or has grown since: a turn that grew or was edited takes the place of its older form,
    and what a forgotten person said before is refused. Lines that cannot be read are named and left
    out (exit code 1). Without --user, LoCoMo's user is `speaker_a`. A file of
    `memorybus export` names the owner of each event itself. With --from, FILE is what another
    memory exported; a record that differs from its documented format is left out and named. mem0,
    hindsight, honcho and mentisdb can also be read from their running service: give its address in
    place of FILE, and its key in MEM0_API_KEY, HINDSIGHT_API_KEY or HONCHO_API_KEY.

    For example:

    - `memorybus ingest chat.jsonl --user ana`
    - `memorybus ingest conversations/*.json`
    - `memorybus ingest group.jsonl --user-from-name`
    - `memorybus ingest --from mem0 memories.json`
    - `memorybus ingest --from honcho http://localhost:8000/v3/workspaces/home --agent hermes`
    """
    output = common.output()
    if not files:
        output.note("ingest: name at least one FILE; see: memorybus ingest --help", "red")
        return 2
    if user is not None and user_from_name:
        output.note("ingest: say --user or --user-from-name, not both", "red")
        return 2
    settings = common.settings()
    owner: _Owner = {"user": user, "agent": agent, "user_from_name": user_from_name}
    with note_on_interrupt(output, _INTERRUPTED):
        report = _ingest(settings, source, files, owner, partial(show_stage, output))
    _show_report(output, report)
    return 1 if report.refused else 0


def _ingest(
    settings: "Settings",
    source: SourceName | None,
    files: Sequence[str],
    owner: _Owner,
    on_stage: "OnStage",
) -> "IngestReport":
    if source is None:
        from memorybus_console.operations.ingest.files import ingest_files

        paths = [Path(file) for file in files]
        return ingest_files(settings, paths, **owner, on_stage=on_stage)
    from memorybus_console.operations.ingest.foreign.importing import ingest_foreign

    return ingest_foreign(settings, source, files, **owner, on_stage=on_stage)


def _show_report(output: Output, report: "IngestReport") -> None:
    for refusal in report.refused:
        output.note(refusal.describe(), "red")
    if report.level == "spooled":
        output.note(
            "Redis has not taken the events: they are spooled on this disk and will be sent by "
            "the next `memorybus up` or agent",
            "yellow",
        )
    if output.json:
        output.result(report)
        return
    new = "" if report.new_events is None else f", {report.new_events} events new in the log"
    others = {"known already": report.known, "a newer form": report.replaced}
    known = "".join(f", {count} of them {what}" for what, count in others.items() if count)
    events = f", {report.events} events read" if report.events else ""
    output.show(
        f"{report.files} files, {report.sessions} sessions, {report.turns} turns published"
        f"{known}{events}{new}"
    )
    if report.skipped:
        output.show(f"{report.skipped} messages without content were left out")
    if report.unread:
        output.show(f"{report.unread} lines or records could not be read")
    for kind, count in report.dropped.items():
        output.show(f"dropped: {count} {kind}")
