"""``memorybus recall``: ask as a person, preview a prompt's block, evaluate a file of questions."""

import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MemoryBusError, MissingProvider
from memorybus.text.times import parse_timestamp

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import (
    DEFAULT,
    NO_SCOPE_OPTIONS,
    WIDER_OPTIONS,
    Common,
    ScopeFilter,
    ScopeOptions,
    check_names,
    check_time,
    positive,
    scope_of_session,
    split_names,
    to_absolute_time,
)
from memorybus_console.operations.settings import scope_of
from memorybus_console.result import Presentation, Remark
from memorybus_console.views.output import Output
from memorybus_console.views.presenter import parts_of

if TYPE_CHECKING:
    from memorybus.recall.operator_recall import RecallAnswer

    from memorybus_console.operations.evaluation import Evaluation
    from memorybus_console.views.recall import Prompted, Recollected


_OWNER_OPTIONS = ("--agent", "--user", "--workspace")
_MOST_SUGGESTED = 3

AMPLE_BUDGET = 2_000
"""A budget in characters that is large enough for any provider to show something."""


def check_question(_: Any, question: str | None) -> None:
    """Validate that a question, if there is one, is not blank: that would recall everything."""
    if question is not None and not question.strip():
        raise ValueError("Ask something: the question is empty.")


AskingSessionOption = Annotated[
    str | None, Parameter(help="Ask as this session: for its agent, user and workspace.")
]
AskedProvidersOption = Annotated[
    str | None,
    Parameter(help="Only this provider; separate several by commas.", validator=check_names),
]
BlockBudgetOption = Annotated[
    int | None,
    Parameter(
        help="At most this many characters in the block (`text`); results are listed whole.",
        validator=positive,
    ),
]
ExplainOption = Annotated[
    bool, Parameter(help="Show why each memory was found, and the event it came from.", negative="")
]
AsPromptOption = Annotated[
    bool,
    Parameter(
        name="--prompt",
        negative="",
        help="Show the block that a prompt would be given now, and how each provider "
        "answered. It waits as an agent's prompt does (`prefetch_wait`).",
    ),
]
QuestionsFileOption = Annotated[
    Path | None,
    Parameter(
        help="Ask the questions of this file instead, and report how much of what it expects was "
        'recalled. JSON lines: {"question": "…", "expected": ["…"], "user": "…"}.'
    ),
]
AsOfOption = Annotated[
    str | None,
    Parameter(
        name="--as-of",
        help="What was known at this time: ISO 8601, UTC if it names no zone, a date means its "
        "first moment; or how long ago: 2h, 7d. Later statements and corrections are ignored.",
        converter=to_absolute_time,
        validator=check_time,
    ),
]
AnswerTimeoutOption = Annotated[
    float, Parameter(help="Seconds to wait for the answer.", validator=positive)
]


@shown
def run_recall(
    question: Annotated[str | None, Parameter(validator=check_question)] = None,
    *,
    options: ScopeOptions = NO_SCOPE_OPTIONS,
    session: AskingSessionOption = None,
    provider: AskedProvidersOption = None,
    budget: BlockBudgetOption = None,
    timeout: AnswerTimeoutOption = 10.0,
    as_of: AsOfOption = None,
    explain: ExplainOption = False,
    prompt: AsPromptOption = False,
    evaluate: QuestionsFileOption = None,
    common: Common = DEFAULT,
) -> "Presentation[Recollected] | Presentation[Prompted] | Presentation[Evaluation]":
    """Ask what is remembered for one agent, person and workspace, by default those of the settings.

    --all-users, --all-agents and --all-workspaces widen the question. --explain shows for each
    memory why it was found, and which event it came from. With --evaluate give no QUESTION: those
    of the file are asked, and the answers are compared with what the file expects.

    For example:

    - `memorybus recall "When does the inspector come?" --user ana`
    - `memorybus recall "When does the inspector come?" --all-users`
    - `memorybus recall grease --provider holographic --budget 500 --json`
    - `memorybus recall "Which grease does the pump need?" --explain`
    - `memorybus recall "Where does Ana live?" --as-of 2026-03-01`
    - `memorybus recall "Where does Ana live?" --user ana --prompt`
    - `memorybus recall --evaluate questions.jsonl --user ana`
    """
    settings = common.settings()
    if (question is None) is (evaluate is None):
        raise ConfigError("recall: give a QUESTION, or --evaluate FILE; not both")
    if prompt and (question is None or provider or as_of):
        raise ConfigError("recall: --prompt takes a QUESTION, and asks every provider now")
    own = scope_of(settings) if session is None else scope_of_session(session, options, settings)
    characters = settings.recall_budget if budget is None else budget
    ask = _Question(
        question or "",
        options.filter_for(own),
        session,
        split_names(provider) or None,
        timeout,
        None if as_of is None else parse_timestamp(as_of),
    )
    if prompt:
        return _preview(settings, ask, characters)
    if evaluate is not None:
        return _evaluate(common.output(), settings, evaluate, ask, characters)
    return _answer(settings, ask, characters, explain=explain)


def _preview(settings: Settings, ask: "_Question", budget: int) -> "Presentation[Prompted]":
    """Return what a prompt would be given; exit code 1 if no provider could be asked."""
    from memorybus_console.operations.preview import Asker, preview_prompt
    from memorybus_console.views.recall import prompt_parts, prompted

    who = Asker(**msgspec.structs.asdict(ask.scope), session=ask.session or "")
    preview = preview_prompt(settings, ask.question, who, budget=budget)
    nothing = "small talk: no recall" if preview.trivial else "no memory fits this prompt"
    answered = preview.trivial or any(answer.ms is not None for answer in preview.answers)
    return Presentation(
        prompted(preview),
        prompt_parts(preview),
        notes=[] if preview.block else [Remark(nothing)],
        code=int(not answered),
    )


class _Question(msgspec.Struct, frozen=True):
    """A question with its scope; the budget is given when it is asked."""

    question: str
    scope: ScopeFilter
    session: str | None
    providers: tuple[str, ...] | None
    timeout: float
    as_of: int | None = None


def _recall(settings: Settings, ask: _Question, budget: int) -> "RecallAnswer":
    """Ask the workers. Nothing is published, so that no spool has to be opened."""
    from memorybus.recall.operator_recall import recall_now

    try:
        return recall_now(
            settings,
            SYSTEM,
            ask.question,
            **msgspec.structs.asdict(ask.scope),
            session=ask.session,
            providers=ask.providers,
            budget=budget,
            timeout=ask.timeout,
            as_of=ask.as_of,
        )
    except MissingProvider as error:
        raise MissingProvider(
            f"{error}{_suggest_providers(ask.providers or (), settings)}"
        ) from error


def _evaluate(
    output: Output, settings: Settings, path: Path, ask: _Question, budget: int
) -> "Presentation[Evaluation]":
    """Ask the questions of a file; return how much of what it expects was recalled."""
    from memorybus_console.operations import evaluation

    questions = evaluation.read_questions(path)

    def answer(expected: evaluation.ExpectedAnswer) -> "RecallAnswer":
        names = ("user", "agent", "workspace")
        named = {name: value for name in names if (value := getattr(expected, name)) is not None}
        scope = msgspec.structs.replace(ask.scope, **named)
        asked = msgspec.structs.replace(ask, question=expected.question, scope=scope)
        return _recall(settings, asked, budget)

    with output.progress("questions") as bar:
        judged = evaluation.judge_answers(questions, answer, SYSTEM)
        answers = list(bar.track(judged, total=len(questions), description="asking"))
    summary = evaluation.summarize_answers(answers)
    parts = chain(parts_of(summary), parts_of(summary.missed()))
    return Presentation(summary, parts, code=int(summary.failed()))


def _suggest_providers(wanted: Sequence[str], settings: Settings) -> str:
    unknown = (name for name in wanted if name not in settings.providers)
    near = [n for name in unknown for n in get_close_matches(name, settings.providers, n=1)]
    return f"; did you mean {' and '.join(map(repr, near))}?" if near else ""


def _explain_nothing(
    settings: Settings, ask: _Question, answer: "RecallAnswer", budget: int
) -> str:
    """Return why there is no text: nothing is remembered, or the budget is too small for it."""
    if not answer.results and budget < AMPLE_BUDGET:
        answer = _recall(settings, ask, AMPLE_BUDGET)
    if not answer.results:
        return f"nothing is remembered about that for {ask.scope}; {_suggest_owners(settings, ask)}"
    return (
        f"something is remembered about that, but a budget of {budget} characters is too small "
        f"for a block; give a larger --budget"
    )


def _suggest_owners(settings: Settings, ask: _Question) -> str:
    from memorybus_console.operations.memories.browsing import list_people

    try:
        people = list_people(settings, most=_MOST_SUGGESTED).people
    except MemoryBusError:
        return f"ask wider with {WIDER_OPTIONS}"
    if not people:
        return "no provider keeps anything yet: publish with an agent, or memorybus ingest FILE"
    asked = shlex.quote(ask.question)
    options = [
        shlex.join(
            [word for pair in zip(_OWNER_OPTIONS, person.owner, strict=True) for word in pair]
        )
        for person in people
    ]
    commands = "".join(f"\n  memorybus recall {asked} {words}" for words in options)
    return f"ask wider with {WIDER_OPTIONS}, or for these:{commands}"


def _answer(
    settings: Settings, ask: _Question, budget: int, *, explain: bool
) -> "Presentation[Recollected]":
    """Return what is remembered; exit code 1 if nobody remembers and a provider was silent."""
    from memorybus_console.views.recall import (
        Recollected,
        memory_details,
        recalled,
        recalled_table,
    )

    answer = _recall(settings, ask, budget)
    notes = [
        Remark(f"{name} did not answer: {why}", "yellow") for name, why in answer.missing.items()
    ]
    if not answer.text and not answer.missing:
        notes.append(Remark(_explain_nothing(settings, ask, answer, budget)))
    details = (memory_details(number, item) for number, item in enumerate(answer.results, start=1))
    table = [recalled_table(answer.results, SYSTEM.now_ms())] if answer.results else []
    return Presentation(
        Recollected(answer.text, list(map(recalled, answer.results))),
        details if explain else table,
        notes=notes,
        code=int(bool(answer.missing) and not answer.results),
    )
