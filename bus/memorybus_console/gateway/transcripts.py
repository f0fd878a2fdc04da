"""Makes events of a host's transcript: turns, sub-agents' tasks, compressions, and its end.

The lines are read by the readers that import such files. An event's id is derived from the line
with which it begins, so that the same lines again add nothing (G2).
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.errors import EventError
from memorybus.events import ContextCompressing
from memorybus.ids import Derivation, text_digest
from memorybus.receipt import Receipt

from memorybus_console.gateway.messages import ReadTranscript, TranscriptLink, TranscriptRead
from memorybus_console.operations.ingest.reading import claude_code, codex
from memorybus_console.operations.ingest.reading.contents import content_of
from memorybus_console.operations.ingest.reading.json_files import JsonFile, JsonLine, parse_lines
from memorybus_console.operations.ingest.reading.messages import parse_messages
from memorybus_console.operations.ingest.reading.model import ReadingOptions, RecordedTurn
from memorybus_console.operations.ingest.reading.names import role_of, time_in
from memorybus_console.operations.ingest.report import LeftOut

_PLAIN_LINES: Final = {"claude-code": claude_code.plain_lines, "codex": codex.plain_lines}
_TASK_TOOLS: Final = ("Task", "Agent")
"""The tools by which Claude Code starts a sub-agent."""
_MOST_LINKS: Final = 100
"""How many turns a rewind can take back (G10)."""

_log = logging.getLogger("memorybus")


class Stretch(NamedTuple):
    """The lines from one prompt to the next.

    Attributes:
        end: the number of the last line.
        mark: what stands for the first line.
        parent: the line before its prompt; "" if none is named.
        values: what the lines hold.
        turn: the turn that they tell of; None if nobody speaks in them.
    """

    end: int
    mark: str
    parent: str
    values: tuple[Mapping[str, Any], ...]
    turn: RecordedTurn | None


class SubAgentTask(NamedTuple):
    """What a sub-agent did."""

    call: str
    task: str
    result: str
    child: str


def publish(
    session: Session, request: ReadTranscript, settings: Settings
) -> tuple[Session, TranscriptRead]:
    """Publish what lines tell, but for a turn that is not over; return the session as it goes on.

    Turns that a rewind left are taken back. An event that the bus refuses (too large, an invalid
    text) is left out, and logged.

    Raises:
        SpoolError: the spool takes no more; the lines are to be sent again.
    """
    options = ReadingOptions(settings.zone, settings.event_max_bytes)
    left_out, raw = LeftOut(), request.lines.split("\n")
    stretches = read_stretches(raw, request.format, options, left_out)
    if stretches and not _is_over(stretches[-1], request):
        stretches.pop()
    recent = [stretch for stretch in stretches if not _is_older(stretch, request.since)]
    ids, chain = _ids_of(session), list(request.chain)
    for stretch in recent:
        session = _take_back(session, chain, stretch, ids)
        published = _publish_events(session, _events(session, ids, stretch, options))
        chain.append(TranscriptLink(stretch.parent, tuple(published)))
    if left_out.unread:
        _log.warning("transcript of %s: %d lines cannot be read", session.id, left_out.unread)
    if request.reason is not None:
        session.ended(request.reason, event_id=ids.id("end", "transcript", request.position))
    turns = [stretch.turn for stretch in recent if stretch.turn]
    if turns:
        session.queue_prefetch(turns[-1].user, turns[-1].assistant)
    read = stretches[-1].end if stretches else 0
    return session, TranscriptRead(read, len(turns), tuple(chain[-_MOST_LINKS:]))


def _take_back(
    session: Session, chain: list[TranscriptLink], stretch: Stretch, ids: Derivation
) -> Session:
    """Take back the turns that a prompt replaces, and return the session as it goes on.

    Claude Code never deletes a line: after a rewind, the next prompt stands behind the same line
    as the one that it replaces.
    """
    places = (
        at for at, link in enumerate(chain) if stretch.parent and link.parent == stretch.parent
    )
    kept = next(places, len(chain))
    undone = [event for link in chain[kept:] for event in link.events]
    del chain[kept:]
    rewind = ids.id("rewind", stretch.mark)
    return session.undo(*undone, event_id=rewind) if undone else session


def _ids_of(session: Session) -> Derivation:
    """Return what ids are derived from: a rewind does not change those of lines that come again."""
    scope = session.scope
    return Derivation(scope.agent, scope.user, scope.workspace, session.id, 0)


def _publish_events(session: Session, events: Iterable[Callable[[], Receipt]]) -> Iterator[str]:
    """Publish events; yield their ids."""
    for publish_event in events:
        try:
            yield publish_event().event_id
        except EventError as error:
            _log.warning("transcript of %s: an event is left out: %s", session.id, error)


def read_stretches(
    raw: Sequence[str], kind: str, options: ReadingOptions, left_out: LeftOut
) -> list[Stretch]:
    """Return the stretches of lines; pure.

    Args:
        raw: the lines, without their ends.
        kind: whose transcript it is.
        options: how times are read, and how large a turn may be.
        left_out: gets what cannot be read.
    """
    encoded = [line.encode("utf-8", "surrogatepass") for line in raw]
    lines = list(parse_lines(encoded, "transcript", left_out))
    spoken = [_alone(line) for line in _PLAIN_LINES[kind](lines, left_out)]
    prompts = {line.number for line in spoken if _is_prompt(line.value)}
    # Lines before the first prompt belong to a turn that was read before, or to none.
    bounds = sorted({1, *prompts, len(raw) + bool(raw[-1])})
    stretches = []
    for begin, after in pairwise(bounds):
        of_turn = [line for line in spoken if begin <= line.number < after]
        values = [line.value for line in lines if begin <= line.number < after]
        parent = values[0].get("parentUuid") if begin in prompts else None
        stretches.append(
            Stretch(
                end=after - 1,
                mark=text_digest(raw[begin - 1]),
                parent=parent if isinstance(parent, str) else "",
                values=tuple(value for value in values if isinstance(value, dict)),
                turn=_turn(of_turn, options, left_out),
            )
        )
    return stretches


def _alone(line: JsonLine) -> JsonLine:
    """Return a message without the session around it, which the request names."""
    value = line.value
    around = isinstance(value, dict) and isinstance(value.get("messages"), list)
    return line._replace(value=value["messages"][0]) if around and value["messages"] else line


def _is_prompt(message: Any) -> bool:
    spoken = isinstance(message, dict) and role_of(message) == "user"
    return spoken and content_of(message, "user", LeftOut()).text != ""


def _turn(
    lines: Sequence[JsonLine], options: ReadingOptions, left_out: LeftOut
) -> RecordedTurn | None:
    file = JsonFile(list(lines), single=False)
    read = parse_messages(file, "transcript", "transcript", options, left_out)
    turns = (turn for conversation in read.conversations for turn in conversation.turns)
    return next(turns, None)


def _is_over(stretch: Stretch, request: ReadTranscript) -> bool:
    """Return whether the last turn is whole: a host may call its hook before its last line."""
    turn = stretch.turn
    if turn is None or request.stage == "closed":
        return True
    answer, last = "".join(turn.assistant.split()), "".join(request.answer.split())
    return request.stage == "answered" and answer != "" and answer.endswith(last)


def _is_older(stretch: Stretch, since: int) -> bool:
    return stretch.turn is not None and stretch.turn.at is not None and stretch.turn.at < since


def _events(
    session: Session, ids: Derivation, stretch: Stretch, options: ReadingOptions
) -> Iterator[Callable[[], Receipt]]:
    """Yield what publishes each event of a stretch; its turn is whole at its end."""
    turn = stretch.turn
    for value in filter(_is_compression, stretch.values):
        mark = str(value.get("uuid") or value.get("timestamp"))
        compressed = ids.id("compressing", "transcript", mark)
        at = time_in(value, options.zone, LeftOut())
        yield partial(session.publish, ContextCompressing(), compressed, at)
    for task in tasks_of(stretch.values):
        yield partial(
            session.delegated,
            task.task,
            task.result,
            child_session=task.child,
            event_id=ids.id("delegation", task.call),
            at=turn.at if turn else None,
        )
    if turn is not None:
        yield partial(
            session.turn_completed,
            turn.user,
            turn.assistant,
            messages=turn.messages,
            event_id=ids.id("turn", "transcript", turn.source_id or stretch.mark),
            source_id=turn.source_id,
            model=next(filter(None, map(_model_of, reversed(stretch.values))), ""),
            at=turn.at,
        )


def _is_compression(value: Mapping[str, Any]) -> bool:
    return value.get("subtype") == "compact_boundary" or value.get("type") == "compacted"


def _model_of(value: Mapping[str, Any]) -> str:
    message = value.get("message")
    model = message.get("model") if isinstance(message, dict) else None
    return model if isinstance(model, str) else ""


def tasks_of(values: Iterable[Mapping[str, Any]]) -> Iterator[SubAgentTask]:
    """Yield the sub-agents' tasks of Claude Code that have a result; pure."""
    asked: dict[str, str] = {}
    for value in values:
        for part in _parts(value):
            given = part.get("input")
            if part.get("name") in _TASK_TOOLS and isinstance(given, dict):
                asked[str(part.get("id"))] = str(given.get("prompt") or given.get("description"))
            call = str(part.get("tool_use_id"))
            if call in asked:
                about = value.get("toolUseResult")
                child = about.get("agentId") if isinstance(about, dict) else None
                result = content_of({"content": part.get("content")}, "tool", LeftOut()).text
                yield SubAgentTask(call, asked.pop(call), result, str(child or call))


def _parts(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the parts of a message of the agent itself."""
    message = value.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if value.get("isSidechain") is True or not isinstance(content, list):
        return []
    return [part for part in content if isinstance(part, dict)]
