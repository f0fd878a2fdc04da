"""What insights count of an event, as a column, so that nobody need decode its envelope."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from memorybus.events import ModelUsage, ShownMemories
from memorybus.msgspec_types import prepared

FIGURES = "figures"  # the name of the column; it is null where an event has nothing to count
FIGURES_VERSION = 2
"""Grows when `Figures` gets a field; the manifest names the version that a segment has."""

COUNTED_COLUMNS = (
    "id",
    "kind",
    "type",
    "agent",
    "user",
    "workspace",
    "platform",
    "session",
    "root",
    "at",
    "omitted",
)
"""The columns that insights read beside that of the figures."""

_SKILL_VIEW, _SKILL_EDIT = "skill_view", "skill_manage"
"""The tools with which a model loads and edits skills (Hermes's names)."""

_NAME = re.compile(r'"name"\s*:\s*"((?:[^"\\]|\\.)*)"')


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What is counted of one event; a field without a value is empty."""

    # Messages of the person; `assistant_messages` and `tool_messages` likewise. A delegation has
    # the calls of its tools as `tool_messages`.
    user_messages: int = 0
    assistant_messages: int = 0
    tool_messages: int = 0
    model: str = ""  # the model that answered
    tokens_in: int = 0  # prompt tokens, also cached ones; 0 if unknown
    tokens_out: int = 0  # completion tokens; 0 if unknown
    cost: float | None = None  # US dollars; None if unknown
    tools: Sequence[str] = ()  # the name of each tool that was called, once for each call
    skills_loaded: Sequence[str] = ()  # the name of each skill that was loaded, once for each time
    skills_edited: Sequence[str] = ()  # the name of each skill that was edited, once for each time
    # The action of a memory's write, the reason of a switch, a compression's number, a memory's new
    # state, or the kind of a conclusion.
    what: str = ""
    about: str = ""  # the store of a memory's write, the provider of a tool's call
    retracted: Sequence[str] = ()  # the ids of the events that a rewind took back
    usage: Sequence[ModelUsage] = ()  # what the host counted for the whole session
    recalled: Sequence[ShownMemories] = ()  # what the turn's prompt was given, by provider


class _Message(msgspec.Struct, frozen=True, gc=False):
    role: Any = None
    tool_calls: Any = None
    tool_name: Any = None


class _Event(msgspec.Struct, frozen=True, gc=False):
    """The fields of any event that are counted; the others are skipped without decoding."""

    type: str
    messages: tuple[_Message, ...] = ()
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = -1.0
    action: str = ""
    store: str = ""
    reason: str = ""
    provider: str = ""
    tool: str = ""
    retracted: tuple[str, ...] = ()
    usage: tuple[ModelUsage, ...] = ()
    recalled: tuple[ShownMemories, ...] = ()
    after: str = ""
    compression_count: int = 0
    kind: str = ""
    tool_count: int = -1


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    event: _Event


_decoder = msgspec.msgpack.Decoder(prepared(_Envelope))


def figures_of(body: bytes | None) -> Figures | None:
    """Return what is counted of an envelope's msgpack bytes; None if there is nothing."""
    if not body:
        return None
    try:
        event = _decoder.decode(body).event
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None  # an entry that cannot be read, or an event of a later release
    if event.type == "TurnCompleted":
        return _figures_of_turn(event)
    make = _OTHERS.get(event.type)
    return make(event) if make else None


def _figures_of_turn(event: _Event) -> Figures:
    roles = [message.role for message in event.messages] or _WORDS_ALONE
    calls = [call for message in event.messages if message.tool_calls for call in _calls(message)]
    skills = [(name, _skill(arguments)) for name, arguments in calls if name in _SKILL_TOOLS]
    return Figures(
        user_messages=roles.count("user"),
        assistant_messages=roles.count("assistant"),
        tool_messages=roles.count("tool"),
        model=event.model,
        tokens_in=event.tokens_in,
        tokens_out=event.tokens_out,
        cost=_cost(event.cost),
        tools=_tools([name for name, _ in calls], event.messages),
        skills_loaded=[skill for name, skill in skills if skill and name == _SKILL_VIEW],
        skills_edited=[skill for name, skill in skills if skill and name == _SKILL_EDIT],
        recalled=event.recalled,
    )


_SKILL_TOOLS = frozenset((_SKILL_VIEW, _SKILL_EDIT))
_WORDS_ALONE = ["user", "assistant"]  # the roles of a turn that was published without its messages

_OTHERS: Mapping[str, Callable[[_Event], Figures | None]] = {
    "MemoryWritten": lambda event: Figures(what=event.action, about=event.store or "memory"),
    "SessionSwitched": lambda event: Figures(
        what=event.reason or "resume", retracted=event.retracted
    ),
    "SessionEnded": lambda event: Figures(usage=event.usage) if event.usage else None,
    "ToolCalled": lambda event: Figures(tools=[event.tool], about=event.provider),
    "Derived": lambda event: Figures(
        what=event.kind,
        tokens_in=event.tokens_in,
        tokens_out=event.tokens_out,
        cost=_cost(event.cost) if event.model else None,
    ),
    "MemoryCurated": lambda event: Figures(what=event.after),
    "ContextCompressing": lambda event: Figures(what=str(event.compression_count)),
    "Delegated": lambda event: Figures(
        model=event.model,
        tokens_in=event.tokens_in,
        tokens_out=event.tokens_out,
        tool_messages=max(0, event.tool_count),
    ),
}


def _cost(cost: float) -> float | None:
    return cost if cost >= 0 else None


def _tools(called: list[str], messages: Sequence[_Message]) -> list[str]:
    """Return the tools that a turn called: by its calls or by their results, whichever has more."""
    answered = [
        message.tool_name
        for message in messages
        if message.tool_name and message.role == "tool" and isinstance(message.tool_name, str)
    ]
    if not answered:
        return called
    return list((Counter(called) | Counter(answered)).elements())


def _calls(message: _Message) -> Iterator[tuple[str, object]]:
    """Yield the name and the arguments of each well-formed call of a message."""
    for call in message.tool_calls if isinstance(message.tool_calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(name := function.get("name"), str) and name:
            yield name, function.get("arguments")


def _skill(arguments: object) -> str:
    """Return the name of the skill in a call's arguments; a long text in them may be cut."""
    if isinstance(arguments, dict):
        name = arguments.get("name")
        return name if isinstance(name, str) else ""
    match = _NAME.search(arguments) if isinstance(arguments, str) else None
    return match[1] if match else ""


def figures_type(pa: Any) -> Any:
    usage = pa.struct(
        [
            ("model", pa.string()),
            ("task", pa.string()),
            ("calls", pa.int64()),
            ("tokens_in", pa.int64()),
            ("tokens_out", pa.int64()),
            ("cost", pa.float64()),
        ]
    )
    texts = pa.list_(pa.string())
    kinds = {"cost": pa.float64(), "model": pa.string(), "what": pa.string(), "about": pa.string()}
    kinds |= dict.fromkeys(("tools", "skills_loaded", "skills_edited", "retracted"), texts)
    given = pa.struct([("provider", pa.string()), ("outcome", pa.string()), ("events", texts)])
    kinds |= {"usage": pa.list_(usage), "recalled": pa.list_(given)}
    names = Figures.__struct_fields__
    return pa.struct([(name, kinds.get(name, pa.int64())) for name in names])


def figures_array(pa: Any, bodies: Sequence[bytes | None]) -> Any:
    rows = [figures_of(body) for body in bodies]
    columns = zip(*(msgspec.structs.astuple(row or _NOTHING) for row in rows), strict=True)
    kind = figures_type(pa)
    arrays = [
        pa.array(_plain(values) if field.name in ("usage", "recalled") else values, field.type)
        for values, field in zip(columns, kind, strict=True)
    ]
    nothing = pa.array([row is None for row in rows], pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=nothing)


_NOTHING = Figures()


def _plain(lists: Sequence[Sequence[msgspec.Struct]]) -> list[list[dict[str, Any]]]:
    return [[msgspec.structs.asdict(each) for each in structs] for structs in lists]


def with_figures(pa: Any, rows: Any) -> Any:
    """Return rows with the column of figures in place of that of envelopes (`pyarrow.Table`)."""
    bodies = rows.column("envelope").to_pylist()
    counted = rows.drop_columns("envelope")
    return counted.append_column(pa.field(FIGURES, figures_type(pa)), figures_array(pa, bodies))
