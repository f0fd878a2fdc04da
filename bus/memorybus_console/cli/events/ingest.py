"""``memorybus ingest``: publish recorded conversations and what other memories exported."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from memorybus.errors import ConfigError

from memorybus_console.cli.answers import shown
from memorybus_console.cli.failures import note_on_interrupt, show_stage
from memorybus_console.cli.options import (
    DEFAULT,
    AgentOption,
    Common,
    FlagOption,
    UserOption,
)

if TYPE_CHECKING:
    from memorybus_console.operations.ingest.report import IngestReport

SourceName = Literal["mem0", "hindsight", "honcho", "mentisdb", "zep", "letta", "memorybus"]
SourceOption = Annotated[
    SourceName | None, Parameter(name="--from", help="The system FILE was exported from.")
]

UserFromNameOption = Annotated[
    FlagOption, Parameter(help="Each named speaker is a person with memories of their own.")
]

_INTERRUPTED = "interrupted: what was published stays; the same command publishes the rest"


@shown
def run_ingest(
    *files: str,
    user: UserOption = None,
    user_from_name: UserFromNameOption = False,
    agent: AgentOption = None,
    source: SourceOption = None,
    common: Common = DEFAULT,
) -> "IngestReport":
    """Publish recorded conversations, or exported events.

    Conversations are exports of ChatGPT and claude.ai (ZIP or JSON), transcripts of Claude Code and
    Codex, ShareGPT, LoCoMo, and messages of OpenAI, Anthropic, Gemini and LangChain: JSON, a
    message or a conversation on each line, or one document, also gzipped. Ingesting a file again
    adds nothing, also if it was cut, renamed or has grown since: a turn that grew or was edited
    takes the place of its older form, and what a forgotten person said before is refused. Lines
    that cannot be read are named and left out (exit code 1). Without --user, LoCoMo's user is
    `speaker_a`. A file of `memorybus export` names the owner of each event itself. With --from,
    FILE is what another memory exported; a record that differs from its documented format is left
    out and named. mem0, hindsight, honcho and mentisdb can also be read from their running service:
    give its address in place of FILE, and its key in MEM0_API_KEY, HINDSIGHT_API_KEY or
    HONCHO_API_KEY.

    For example:

    - `memorybus ingest chat.jsonl --user ana`
    - `memorybus ingest chatgpt-export.zip`
    - `memorybus ingest ~/.claude/projects/*/*.jsonl`
    - `memorybus ingest group.jsonl --user-from-name`
    - `memorybus ingest --from mem0 memories.json`
    - `memorybus ingest --from honcho http://localhost:8000/v3/workspaces/home --agent hermes`
    """
    if not files:
        raise ConfigError("name at least one FILE; see: memorybus ingest --help")
    if user is not None and user_from_name:
        raise ConfigError("give --user or --user-from-name, not both")
    output, settings = common.output(), common.settings()
    with note_on_interrupt(output, _INTERRUPTED):
        if source is None:
            from memorybus_console.operations.ingest.files import ingest_files

            ingest = partial(ingest_files, settings, [Path(file) for file in files])
        else:
            from memorybus_console.operations.ingest.foreign.importing import ingest_foreign

            ingest = partial(ingest_foreign, settings, source, files)
        return ingest(
            user=user,
            agent=agent,
            user_from_name=user_from_name,
            on_stage=partial(show_stage, output),
        )
