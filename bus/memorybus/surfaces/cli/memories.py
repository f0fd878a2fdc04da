"""Commands about memories: ingest and recall."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import App, Parameter
from rich.text import Text

from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import MissingProvider
from memorybus.surfaces.cli.options import (
    DEFAULT,
    MEMORIES,
    Common,
    a_time,
    absolute,
    names,
    positive,
    some_names,
)
from memorybus.surfaces.cli.scope_options import (
    NOBODY_NAMED,
    WIDER,
    ScopeFilter,
    ScopeOptions,
    scope_of,
    scope_of_session,
)
from memorybus.surfaces.views.output import Output
from memorybus.surfaces.views.safe import visible
from memorybus.text.times import parse_timestamp

if TYPE_CHECKING:
    from memorybus.operations.ingest import ingest
    from memorybus.recall.live import RecallAnswer


AMPLE = 2_000
"""Characters that are enough for any provider to show something."""


def asked(_: Any, question: str | None) -> None:
    """Validate a question, if there is one: an empty one would be answered with everything."""
    if question is not None and not question.strip():
        raise ValueError("Ask something: the question is empty.")


Session = Annotated[
    str | None, Parameter(help="As this session would ask: for its agent, user and workspace.")
]
Providers = Annotated[
    str | None, Parameter(help="Only this provider; several by comma.", validator=some_names)
]
Budget = Annotated[
    int | None,
    Parameter(
        help="Characters of the block (`text`) at most; single results are shown whole.",
        validator=positive,
    ),
]
Explain = Annotated[
    bool, Parameter(help="Say why each memory was found, and which event brought it.", negative="")
]
AsPrompt = Annotated[
    bool,
    Parameter(
        name="--prompt",
        negative="",
        help="Show the very block that a prompt would be given now, and how each provider "
        "answered: ready, in time, or too late.",
    ),
]
Questions = Annotated[
    Path | None,
    Parameter(
        help="Ask the questions of this file instead, and tell how much of what it expects came: "
        'JSON lines, {"question": "…", "expected": ["…"], "user": "…"}.'
    ),
]
AsOf = Annotated[
    str | None,
    Parameter(
        name="--as-of",
        help="What was known then: an ISO 8601 time, UTC if it names no zone; a date is its "
        "first moment; or how long ago: 2h, 7d. What was said or put right later does not count.",
        converter=absolute,
        validator=a_time,
    ),
]
Timeout = Annotated[float, Parameter(help="Seconds to wait for the answer.", validator=positive)]
User = Annotated[str | None, Parameter(help="The person.")]
Agent = Annotated[str | None, Parameter(help="The agent's identity.")]
SourceName = Literal["mem0", "hindsight", "honcho", "mentisdb", "zep", "letta", "memorybus"]
Source = Annotated[
    SourceName | None, Parameter(name="--from", help="The memory that exported FILE.")
]


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_ingest, name="ingest", group=MEMORIES)
    app.command(run_recall, name="recall", group=MEMORIES)


def run_ingest(
    *files: str,
    user: User = None,
    agent: Agent = None,
    source: Source = None,
    common: Common = DEFAULT,
) -> int:
    """Publish recorded conversations: OpenAI-style message JSONL, LoCoMo JSON; or exported events.

    The same file twice adds nothing. A file that cannot be read whole is reported and the others
    go on (exit code 1). Without --user, LoCoMo's user is `speaker_a`. What `memorybus export`
    wrote says itself whose each event is. With --from, FILE is what another memory exported:
    a record that is not as it documents it is left out by name, and the others go on. mem0,
    hindsight, honcho and mentisdb are also read where they run: give an address; a key is in
    MEM0_API_KEY, HINDSIGHT_API_KEY or HONCHO_API_KEY.

    For example:

    - `memorybus ingest chat.jsonl --user ana`
    - `memorybus ingest conversations/*.json`
    - `memorybus ingest --from mem0 memories.json`
    - `memorybus ingest --from honcho http://localhost:8000/v3/workspaces/home --agent hermes`
    """
    from memorybus.surfaces.cli.ingest import ingest_all, ingest_from

    output = common.output()
    if not files:
        output.note("ingest: name at least one FILE; see: memorybus ingest --help", "red")
        return 2
    settings = common.settings()
    if source is None:
        report = ingest_all(settings, [Path(file) for file in files], user, agent, output)
    else:
        report = ingest_from(settings, source, files, user, agent, output)
    _show_report(output, report)
    return 1 if report.refused else 0


def _show_report(output: Output, report: "ingest.IngestReport") -> None:
    for refusal in report.refused:
        output.note(_refusal(refusal), "red")
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
    events = f", {report.events} events read" if report.events else ""
    output.show(
        f"{report.files} files, {report.sessions} sessions, {report.turns} turns published"
        f"{events}{new}"
    )
    if report.skipped:
        output.show(f"{report.skipped} messages without content were left out")


def _refusal(refusal: "ingest.RefusedInput") -> str:
    said = refusal.why
    return said if said.startswith(refusal.what) else f"{refusal.what}: {said}"


def run_recall(
    question: Annotated[str | None, Parameter(validator=asked)] = None,
    *,
    whose: ScopeOptions = NOBODY_NAMED,
    session: Session = None,
    provider: Providers = None,
    budget: Budget = None,
    timeout: Timeout = 10.0,
    as_of: AsOf = None,
    explain: Explain = False,
    prompt: AsPrompt = False,
    evaluate: Questions = None,
    common: Common = DEFAULT,
) -> int:
    """Ask what is remembered for one agent, person and workspace: those of the settings.

    An operator asks for more by name: --all-users, --all-agents, --all-workspaces. With --explain
    each memory says why it was found, and which event brought it. With --evaluate no QUESTION is
    given: those of the file are asked, and what came is compared with what was expected.

    For example:

    - `memorybus recall "When does the inspector come?" --user ana`
    - `memorybus recall "When does the inspector come?" --all-users`
    - `memorybus recall grease --provider holographic --budget 500 --json`
    - `memorybus recall "Which grease does the pump need?" --explain`
    - `memorybus recall "Where does Ana live?" --as-of 2026-03-01`
    - `memorybus recall "Where does Ana live?" --user ana --prompt`
    - `memorybus recall --evaluate questions.jsonl --user ana`
    """
    output, settings = common.output(), common.settings()
    if (question is None) is (evaluate is None):
        output.note("recall: give a QUESTION, or --evaluate FILE; not both", "red")
        return 2
    own = scope_of(settings) if session is None else scope_of_session(session, whose, settings)
    given = settings.recall_budget if budget is None else budget
    if prompt:
        if question is None or provider or as_of:
            output.note("recall: --prompt takes a QUESTION, and asks every provider now", "red")
            return 2
        return _prompted(output, settings, question, whose.of(own), session, given, timeout)
    known_by = None if as_of is None else parse_timestamp(as_of)
    named = names(provider) or None
    ask = _Question(question or "", whose.of(own), session, named, timeout, known_by)
    if evaluate is not None:
        return _evaluate(output, settings, evaluate, ask, given)
    found = _recalled(settings, ask, given)
    for name, reason in found.missing.items():
        output.note(f"{name} did not answer: {reason}", "yellow")
    _show_answer(output, found, explain=explain)
    if not found.text and not found.missing:
        output.note(_nothing(settings, ask, found, given))
    return 1 if found.missing and not found.results else 0


def _prompted(
    output: Output,
    settings: Settings,
    question: str,
    asked: ScopeFilter,
    session: str | None,
    budget: int,
    timeout: float,
) -> int:
    """Show what a prompt would be given; exit code 1 if nobody could be asked."""
    from memorybus.recall.asking import Asker, preview_prompt
    from memorybus.surfaces.views.prompt import asked_json, asked_table

    who = Asker(asked.agent, asked.user, asked.workspace, session or "")
    found = preview_prompt(settings, question, who, budget=budget, timeout=timeout)
    if output.json:
        output.result(asked_json(found))
    else:
        output.show(asked_table(found))
        output.show(Text(f"\n{visible(found.block)}") if found.block else "")
        if not found.block:
            output.note("the prompt asks nothing" if found.trivial else "it would be given nothing")
    return 0 if found.trivial or any(one.ms is not None for one in found.answers) else 1


class _Question(msgspec.Struct, frozen=True):
    """What is asked, whatever the budget."""

    question: str
    asked: ScopeFilter
    session: str | None
    providers: tuple[str, ...] | None
    timeout: float
    as_of: int | None = None


def _recalled(settings: Settings, ask: _Question, budget: int) -> "RecallAnswer":
    """Ask the workers without publishing anything, hence without opening a spool."""
    from memorybus.recall.live import recall_now

    try:
        return recall_now(
            settings,
            SYSTEM,
            ask.question,
            **msgspec.structs.asdict(ask.asked),
            session=ask.session,
            providers=ask.providers,
            budget=budget,
            timeout=ask.timeout,
            as_of=ask.as_of,
        )
    except MissingProvider as error:
        raise MissingProvider(f"{error}{_nearest(ask.providers or (), settings)}") from error


def _evaluate(output: Output, settings: Settings, path: Path, ask: _Question, budget: int) -> int:
    """Ask the questions of a file and show what came of what was expected."""
    from memorybus.operations import evaluation
    from memorybus.surfaces.views.evaluation import evaluation_text, missed_table

    questions = evaluation.read_questions(path)

    def answer(one: evaluation.ExpectedAnswer) -> "RecallAnswer":
        given = {"user": one.user, "agent": one.agent, "workspace": one.workspace}
        named = {name: value for name, value in given.items() if value is not None}
        whose = msgspec.structs.replace(ask.asked, **named)
        asked = msgspec.structs.replace(ask, question=one.question, asked=whose)
        return _recalled(settings, asked, budget)

    with output.progress("questions") as bar:
        judged = evaluation.judge_answers(questions, answer, SYSTEM)
        answers = list(bar.track(judged, total=len(questions), description="asking"))
    found = evaluation.summarize_answers(answers)
    if output.json:
        output.result(msgspec.structs.asdict(found) | {"answers": answers})
    else:
        output.show(evaluation_text(found))
        missed = [one for one in answers if one.missing or one.silent]
        if missed:
            output.show(missed_table(missed))
    return 1 if any(one.silent for one in answers) else 0


def _nearest(wanted: Sequence[str], settings: Settings) -> str:
    unknown = (name for name in wanted if name not in settings.providers)
    near = [n for name in unknown for n in get_close_matches(name, settings.providers, n=1)]
    return f"; did you mean {' and '.join(map(repr, near))}?" if near else ""


def _nothing(settings: Settings, ask: _Question, found: "RecallAnswer", budget: int) -> str:
    """Say why there is no text: nothing is remembered, or the budget is too small to show it."""
    if not found.results and budget < AMPLE:
        found = _recalled(settings, ask, AMPLE)
    if not found.results:
        return f"nothing is remembered about that for {ask.asked}; ask wider with {WIDER}"
    return (
        f"something is remembered about that, but a budget of {budget} characters is too small "
        f"for a block; give a larger --budget"
    )


def _show_answer(output: Output, found: "RecallAnswer", *, explain: bool) -> None:
    from memorybus.surfaces.views.recall import explained, recalled_json, recalled_table

    if output.json:
        results = [recalled_json(one) for one in found.results]
        output.result({"text": found.text, "results": results})
    elif explain:
        for number, one in enumerate(found.results, start=1):
            output.show(explained(number, one))
    elif found.results:
        output.show(recalled_table(found.results, SYSTEM.now_ms()))
