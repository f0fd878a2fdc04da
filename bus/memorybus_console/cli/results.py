"""What each command prints with ``--json``, as types, from which schemas are derived.

Only `memorybus schema` imports this module, because it imports what all commands import together. A
result that no other module defines as a struct is described here; the tests in
``tests/integration/cli`` check the commands against all of it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, NotRequired, TypedDict

import msgspec
from memorybus.config.origins import EffectiveSetting
from memorybus.events import Position
from memorybus.health.finding import Check
from memorybus.health.status import Status
from memorybus.health.verdict import Verdict
from memorybus.history.whereabouts import Whereabouts
from memorybus.processes.archiver_run import ArchiverRun
from memorybus.processes.reports import TrialStep
from memorybus_hermes.install.install import PythonCheck
from memorybus_hermes.install.status import HermesStatus
from memorybus_hermes.reconcile.reconcile import ReconcileReport

from memorybus_console.actions.dead_letters import LettersActed, PlannedLetters
from memorybus_console.actions.history import PlannedRollback
from memorybus_console.actions.memories import PlannedAmendment
from memorybus_console.operations.archive.export import ArchiveExported
from memorybus_console.operations.archive.segments import Segments
from memorybus_console.operations.archive.verify import ArchiveVerified
from memorybus_console.operations.copies.copies import Copy, CopyDropped
from memorybus_console.operations.copies.filling import CopyProgress
from memorybus_console.operations.copies.generations import Generation
from memorybus_console.operations.copies.replay import CopyFilled, ReplayPlan
from memorybus_console.operations.evaluation import JudgedAnswer
from memorybus_console.operations.events.story import Fate
from memorybus_console.operations.export import ExportResult
from memorybus_console.operations.forget import Erasure, PlannedErasure
from memorybus_console.operations.ingest.new_events import ImportResult
from memorybus_console.operations.ingest.report import IngestReport
from memorybus_console.operations.memories.amending import AmendmentResult
from memorybus_console.operations.memories.browsing import Memories, People
from memorybus_console.operations.preview import ProviderAnswer
from memorybus_console.operations.providers.inventory import ListedProvider
from memorybus_console.operations.providers.lifecycle import PauseResult
from memorybus_console.operations.providers.move import Move
from memorybus_console.operations.providers.removal import Removal
from memorybus_console.operations.providers.retry_now import RetryNow
from memorybus_console.operations.rebuild.diff import RecallDifference
from memorybus_console.operations.rebuild.drop import Drop
from memorybus_console.operations.rebuild.plan import RebuildPlan
from memorybus_console.operations.rebuild.rebuild import RebuildResult
from memorybus_console.operations.rebuild.verify import VerifyResult
from memorybus_console.operations.up import Ready


class Failed(TypedDict):
    """What any command prints when it fails: the error's kind, its message, and what to do."""

    error: str
    message: str
    next: NotRequired[str]


class Demonstrated(TypedDict):
    """What the demo did, see `memorybus demo`; `caught_up` has seconds, by provider."""

    published: int
    applied: dict[str, int]
    caught_up: dict[str, float]
    recalled: str
    seconds: float


class WorkersReady(TypedDict):
    """The line of `memorybus worker` when all are ready; `metrics` if they are served."""

    ready: bool
    worker: str
    workers: list[str]
    metrics: NotRequired[str]


class Serving(TypedDict):
    """The line of `memorybus serve` when it listens.

    `acts` says whether people can act there, `token_file` where the token is that the page made.
    """

    url: str
    acts: bool
    token_file: str | None


class Recalled(TypedDict):
    """A memory; times are ISO 8601, UTC."""

    provider: str
    text: str
    session: str
    at: str | None
    source: str
    truncated: bool
    speaker: str
    event: str
    until: str | None
    before: str
    score: float
    matched: list[str]
    meaning: float | None
    parts: dict[str, float]


class Recollected(TypedDict):
    """What is remembered: the block, and the memories in it."""

    text: str
    results: list[Recalled]


class Prompted(TypedDict):
    """What a prompt would be given; milliseconds."""

    block: str
    answers: list[ProviderAnswer]
    items: list[Recalled]
    trivial: bool
    waited_ms: float
    patience_ms: float


class Evaluated(TypedDict):
    """How well recall answered a file of questions; null where no question measures it."""

    questions: int
    found: float | None
    characters: float | None
    characters_for_nothing: float | None
    p50_ms: float | None
    answers: list[JudgedAnswer]


class Examined(TypedDict):
    """What was checked, and whether all is well."""

    ok: bool
    checks: list[Check]


class PlacedEvent(TypedDict):
    """An event with its position; `event` has the fields of its type."""

    position: Position
    id: str
    key: str
    type: str
    at: str | None
    session: dict[str, Any]
    scope: dict[str, Any]
    event: dict[str, Any]


class EventWhole(PlacedEvent):
    """An event, where it is stored, and its outcome at each instance."""

    lies: Whereabouts
    outcomes: list[Fate]


class EventsFound(TypedDict):
    """A page of a search; `next` is the value of --before for the next page."""

    events: list[PlacedEvent]
    next: str | None
    looked: int
    back_to: str | None
    unread: list[str]


class SessionRow(TypedDict):
    """A session, and the one it came from."""

    session: str
    agent: str
    user: str
    workspace: str
    depth: int
    parent: str | None
    root: str
    reason: str | None
    title: str
    turns: int
    epoch: int
    started_at: str | None
    last_at: str | None
    ended: bool
    links: list[str]


class LetterKey(TypedDict):
    """The first dead letter of a key, with how many events of the key wait."""

    provider: str
    partition: int
    key: str
    event: str
    type: str
    session: str
    error: str | None
    reason: str
    tries: int
    first_at: str | None
    last_at: str | None
    edited: bool
    events: int


class LetterError(TypedDict):
    """A kind of refusal: how many keys it blocks, and how many events wait in all."""

    error: str
    provider: str
    reason: str
    keys: int
    refused: int
    events: int
    first_at: str | None
    last_at: str | None


class LetterProvider(TypedDict):
    """A provider's dead letters."""

    provider: str
    keys: int
    events: int
    errors: int


class Letter(TypedDict):
    """One dead letter: why it was refused, and the event itself."""

    provider: str
    partition: int
    key: str
    event: str
    type: str
    session: str
    error: str | None
    reason: str
    tries: int
    first_at: str | None
    last_at: str | None
    edited: dict[str, Any] | None
    entry: str
    n: int
    at: str | None
    worker: str
    traceback: str
    published: PlacedEvent | None
    missing: str | None


class OfferedTool(TypedDict):
    """A tool as a model is offered it; `parameters` is a JSON schema."""

    name: str
    provider: str
    tool: str
    writes: bool
    description: str
    parameters: dict[str, Any]


class Tried(TypedDict):
    """The result of trying an instance."""

    provider: str
    ok: bool
    steps: list[TrialStep]


class SetUp(TypedDict):
    """An instance that was set up, and the result of trying it."""

    name: str
    kind: str
    file: str
    secrets_file: str
    variables: list[str]
    steps: list[TrialStep]
    written: bool


class HermesHad(TypedDict):
    """A memory provider that Hermes has configured."""

    plugin: str
    source: str
    active: bool
    settings: dict[str, str]
    secrets: list[str]


class HermesInstalled(TypedDict):
    """What was put into a Hermes home."""

    home: str
    changed: list[str]
    python: PythonCheck
    active: str
    providers: list[HermesHad]


class HermesSetUp(TypedDict):
    """What was set up for a Hermes home, and whether a memory was recalled."""

    home: str
    providers: list[str]
    taken_over: list[SetUp]
    workers_stay: bool
    proof: Check


class HermesUninstalled(TypedDict):
    """What ended the recording of a Hermes, and what is still there."""

    home: str
    removed: bool
    deactivated: bool
    remains: list[str]


class PageToken(TypedDict):
    """A token, null if the caller chose it, and its hash for the settings."""

    token: str | None
    page_token: str


class Printed(NamedTuple):
    """What a command prints.

    Attributes:
        kinds: one of these; a list type stands for a JSON array.
        lines: whether it prints one on each line.
    """

    kinds: tuple[Any, ...]
    lines: bool = False


RESULTS: Final[Mapping[str, Printed]] = MappingProxyType(
    {
        "archive export": Printed((ArchiveExported,)),
        "archive import": Printed((ImportResult,)),
        "archive ls": Printed((Segments,)),
        "archive run": Printed((ArchiverRun,)),
        "archive verify": Printed((ArchiveVerified,)),
        "check": Printed((Verdict,)),
        "config page-token": Printed((PageToken,)),
        "config show": Printed((list[EffectiveSetting],)),
        "demo": Printed((Demonstrated,)),
        "diff": Printed((list[RecallDifference],)),
        "dlq discard": Printed((PlannedLetters, LettersActed)),
        "dlq edit": Printed((PlannedLetters, LettersActed)),
        "dlq ls": Printed((list[LetterKey], list[LetterError], list[LetterProvider])),
        "dlq retry": Printed((PlannedLetters, LettersActed)),
        "dlq show": Printed((Letter,)),
        "doctor": Printed((Examined,)),
        "events get": Printed((EventWhole,)),
        "events ls": Printed((list[PlacedEvent],)),
        "events search": Printed((EventsFound,)),
        "events tail": Printed((PlacedEvent,), lines=True),
        "export": Printed((ExportResult,)),
        "forget": Printed((PlannedErasure, Erasure)),
        "hermes install": Printed((HermesInstalled,)),
        "hermes reconcile": Printed((ReconcileReport,)),
        "hermes setup": Printed((HermesSetUp,)),
        "hermes status": Printed((HermesStatus,)),
        "hermes uninstall": Printed((HermesUninstalled,)),
        "ingest": Printed((IngestReport,)),
        "memories correct": Printed((PlannedAmendment, AmendmentResult)),
        "memories delete": Printed((PlannedAmendment, AmendmentResult)),
        "memories list": Printed((Memories,)),
        "memories people": Printed((People,)),
        "provider ls": Printed((list[ListedProvider],)),
        "provider move": Printed((Move,)),
        "provider pause": Printed((PauseResult,)),
        "provider remove": Printed((Removal,)),
        "provider resume": Printed((PauseResult,)),
        "provider retry-now": Printed((RetryNow,)),
        "provider setup": Printed((list[SetUp],)),
        "provider test": Printed((Tried,)),
        "rebuild": Printed((RebuildPlan, RebuildResult, PlannedRollback, Drop)),
        "rebuild ls": Printed((list[Generation],)),
        "recall": Printed((Recollected, Prompted, Evaluated)),
        "replay": Printed((ReplayPlan, CopyProgress, CopyFilled, CopyDropped), lines=True),
        "replay ls": Printed((list[Copy],)),
        "schema": Printed((dict[str, Any],)),
        "serve": Printed((Serving,), lines=True),
        "sessions tree": Printed((list[SessionRow],)),
        "status": Printed((Status,)),
        "tools call": Printed((dict[str, Any],)),
        "tools ls": Printed((list[OfferedTool],)),
        "up": Printed((Ready,), lines=True),
        "verify": Printed((VerifyResult,)),
        "worker": Printed((WorkersReady,), lines=True),
    }
)
"""The results by command; `status --watch` prints its result on one line each second."""


def schema_of(command: str) -> dict[str, Any]:
    """Return the JSON schema of what a command prints; a command that fails prints `Failed`.

    Raises:
        KeyError: the command prints no JSON, or does not exist.
    """
    result = RESULTS[command]
    kinds, types = msgspec.json.schema_components([*result.kinds, Failed])
    where = "each line of standard output" if result.lines else "standard output"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{where} of `memorybus {command} --json`",
        "anyOf": list(kinds),
        "$defs": {name: types[name] for name in sorted(types)},
    }
