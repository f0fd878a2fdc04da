"""What `memorybus insights` answers; docs/insights.md defines each figure."""

import msgspec


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The totals.

    Attributes:
        hours: from the first to the last event of each session, added up.
        tokens_in: prompt tokens, also cached ones.
        cost: US dollars, as far as hosts passed it; None if none did.
        turns_without_tokens: turns for which no tokens are recorded.
        sessions_without_cost: sessions for which no cost is recorded.
        first: when the first counted turn ended, milliseconds; 0 for none.
        last: when the last counted turn ended, milliseconds; 0 for none.
    """

    sessions: int = 0
    turns: int = 0
    messages: int = 0
    user_messages: int = 0
    assistant_messages: int = 0
    tool_messages: int = 0
    tool_calls: int = 0
    hours: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    turns_without_tokens: int = 0
    sessions_without_cost: int = 0
    first: int = 0
    last: int = 0


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """The part of one model, platform, agent or person; `name` is "" if it is unknown."""

    name: str
    sessions: int
    turns: int
    messages: int
    tool_calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    last: int


class ToolUse(msgspec.Struct, frozen=True):
    """How often a tool was called, its share of all calls, and when it was last (milliseconds)."""

    tool: str
    calls: int
    share: float
    last: int


class SkillUse(msgspec.Struct, frozen=True):
    """How often a skill was loaded and edited, and when it was last (milliseconds)."""

    skill: str
    loads: int
    edits: int
    last: int


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """When people talked to agents, in the zone of the report.

    Attributes:
        turns: turns by weekday (Monday first) and hour.
        sessions: sessions that began, by weekday and hour.
        days: turns by day (``2026-05-31``), in order; days without turns are left out.
        active_days: days with at least one turn.
        streak: the most days with a turn that follow each other.
        busiest_day: the day with the most turns; "" for none.
        busiest_hour: the hour (0 to 23) with the most turns; None for none.
    """

    turns: list[list[int]]
    sessions: list[list[int]]
    days: dict[str, int]
    active_days: int
    streak: int
    busiest_day: str
    busiest_hour: int | None


class LongSession(msgspec.Struct, frozen=True):
    """One of the longest sessions."""

    session: str
    user: str
    platform: str
    began: int
    hours: float
    turns: int
    messages: int
    tool_calls: int


class Delegations(msgspec.Struct, frozen=True, kw_only=True):
    """What sub-agents did; their tokens are in no other figure."""

    count: int = 0
    tool_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one store of the agent, or one provider's tools, learned.

    Attributes:
        where: ``store memory``, ``store user``, or the provider whose tools the model called.
        learned: memories that were added.
        corrected: memories that were replaced.
        removed: memories that were removed.
        other: calls of other tools that write.
    """

    where: str
    learned: int
    corrected: int
    removed: int
    other: int


class Aged(msgspec.Struct, frozen=True):
    """How often memories went stale, were archived, came back into use, and were pinned."""

    stale: int = 0
    archived: int = 0
    returned: int = 0
    pinned: int = 0


class ProviderRecall(msgspec.Struct, frozen=True):
    """What one provider gave to prompts that asked it.

    Attributes:
        nothing: it answered, but the prompt was given no memory of it.
        memories: how many memories it gave, in all.
    """

    provider: str
    asked: int
    warm: int
    fresh: int
    late: int
    nothing: int
    memories: int


class RecallDay(msgspec.Struct, frozen=True):
    """A day's turns whose prompts asked memory, and how many of them were given something."""

    day: str
    asked: int
    given: int


class UsedMemory(msgspec.Struct, frozen=True):
    """The event of a memory that prompts were given, how often, and when last (milliseconds)."""

    event: str
    provider: str
    times: int
    last: int


class RecallFigures(msgspec.Struct, frozen=True):
    """What memory gave to the prompts of these days' turns."""

    providers: list[ProviderRecall]
    days: list[RecallDay]
    most_used: list[UsedMemory]


class Conclusions(msgspec.Struct, frozen=True):
    """What was concluded of one kind, its tokens, and its cost as the deriver's prices have it."""

    kind: str
    conclusions: int
    tokens_in: int
    tokens_out: int
    cost: float | None


class Insights(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of some days.

    Attributes:
        days: how many days.
        since: when they begin, milliseconds.
        until: when they end: now.
        zone: the time zone of weekdays, hours and days.
        agent: only this agent; None for all, likewise `user` and `platform`.
        models: by model, most tokens first; a model that only wrote titles has no turns.
        compressions: how often a session's context was compressed.
        gaps: what the figures lack, in words.
    """

    days: int
    since: int
    until: int
    zone: str
    agent: str | None
    user: str | None
    platform: str | None
    overview: Overview
    models: list[Share]
    platforms: list[Share]
    agents: list[Share]
    people: list[Share]
    tools: list[ToolUse]
    skills: list[SkillUse]
    activity: Activity
    longest: list[LongSession]
    compressions: int
    delegations: Delegations
    memories: list[MemoryUse]
    aged: Aged
    derived: list[Conclusions]
    recall: RecallFigures
    gaps: list[str]
