"""Lists the people of whom providers keep memories, and these memories, page by page.

The providers themselves are asked, where their state is (`jobs.inspect`), because only they know
what they keep: there is no second index of people.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, NoWorker
from memorybus.jobs.inspect import InspectionFailed, InstanceInspector, ReadKept, ReadOwners
from memorybus.msgspec_types import prepared
from memorybus.recall.model import RecallRequest
from memorybus.registry.instances import live_name

from memorybus_console.operations.stores import checked_stores
from memorybus_console.result import HIDDEN, TEXT, TIME, Remark, Result

PAGE = 50  # how many people, or memories, a page holds

_NARROW = Remark("there are more: narrow the list with --containing, or raise --limit")

OwnerNames = tuple[str, str, str]  # agent, person and workspace


class BrowsableProvider(msgspec.Struct, frozen=True):
    """A provider whose memories can perhaps be browsed."""

    provider: str
    instance: str
    exports: bool  # whether it can list what it keeps of somebody
    curates: bool
    served: bool  # whether a live worker can answer for it


class Person(msgspec.Struct, frozen=True):
    """An owner of memories.

    Attributes:
        workspace: the project; "" for none.
        memories: how many memories each provider keeps of them; None if it does not count.
    """

    agent: str
    user: str
    workspace: str
    memories: Annotated[dict[str, int | None], TEXT]

    @property
    def owner(self) -> OwnerNames:
        return self.agent, self.user, self.workspace


class People(Result, frozen=True):
    """A page of people.

    Attributes:
        people: in the order of agent, person and workspace.
        unanswered: the providers that cannot list people, each with the reason.
    """

    people: tuple[Person, ...]
    more: Annotated[bool, HIDDEN]
    unanswered: Annotated[dict[str, str], HIDDEN]

    def notes(self) -> Iterator[Remark]:
        yield from (Remark(f"{name}: {why}", "yellow") for name, why in self.unanswered.items())
        if not self.people:
            yield Remark("no provider that can list people has memories")
        if self.more:
            yield _NARROW


class KeptMemory(msgspec.Struct, frozen=True):
    """One memory as its provider keeps it; see a provider's `StoredMemory`.

    Attributes:
        text: verbatim: hostile data.
        at: its time, milliseconds; 0 if unknown.
        event: id of the event that brought it; "" if its provider does not know.
        until: when something newer replaced it, milliseconds; 0 if it is still valid.
        name: its name for the provider's tools; "" if it has none.
        former: whether it is what an entry said before it was replaced or removed.
        state: what the curator or a person made of it: active, stale, archived, pinned.
        used: when it was last recalled, to the day, milliseconds; 0 if never.
    """

    text: Annotated[str, TEXT]
    agent: Annotated[str, HIDDEN] = ""
    user: Annotated[str, HIDDEN] = ""
    workspace: Annotated[str, HIDDEN] = ""
    kind: str = ""
    session: Annotated[str, HIDDEN] = ""
    at: Annotated[int, TIME] = 0
    speaker: str = ""
    event: str = ""
    until: Annotated[int, TIME] = 0
    name: Annotated[str, HIDDEN] = ""
    former: Annotated[bool, HIDDEN] = False
    state: Annotated[str, HIDDEN] = "active"
    used: Annotated[int, HIDDEN] = 0


class Memories(Result, frozen=True):
    """A page of what one provider keeps of somebody."""

    provider: Annotated[str, HIDDEN]
    memories: tuple[KeptMemory, ...]
    skipped: Annotated[int, HIDDEN]
    more: Annotated[bool, HIDDEN]

    def notes(self) -> Iterator[Remark]:
        if self.more:
            yield _NARROW


def list_providers(settings: Settings) -> list[BrowsableProvider]:
    """Return the registered providers, in the order of recall.

    Raises:
        LogError: Redis is away, or the log is another one.
    """
    with checked_stores(settings) as stores:
        live = stores.instances.live()
        served = stores.roster.job_providers()
        return [
            BrowsableProvider(
                *(name, live_name(name, live), info.exports, info.curates, name in served)
            )
            for name, info in stores.roster.providers().items()
        ]


def first_browsable(settings: Settings, *, archived: bool = False) -> str:
    """Return the first provider that can list what it keeps, or what is archived there.

    Raises:
        NoWorker: no worker serves one.
    """
    providers = list_providers(settings)
    return choose_browsable(
        [keeper for keeper in providers if keeper.curates] if archived else providers
    )


def choose_browsable(providers: Iterable[BrowsableProvider]) -> str:
    """Return the first of these providers that can list what it keeps; pure.

    Raises:
        NoWorker: no worker serves one.
    """
    for keeper in providers:
        if keeper.exports and keeper.served:
            return keeper.provider
    raise NoWorker(
        "no live worker serves a provider that can list memories; start one: memorybus up"
    )


def list_people(
    settings: Settings,
    after: OwnerNames | None = None,
    *,
    containing: str = "",
    most: int = PAGE,
    clock: Clock = SYSTEM,
) -> People:
    """Return the people of whom providers keep something, as far as providers can list them."""
    by_provider: dict[str, list[Person]] = {}
    unanswered: dict[str, str] = {}
    more = False
    behind = (
        RecallRequest(query="", agent=after[0], user=after[1], workspace=after[2])
        if after
        else None
    )
    for keeper in list_providers(settings):
        try:
            question = ReadOwners(behind, most, containing)
            inspector = InstanceInspector(settings, clock)
            page = inspector.ask(keeper.provider, keeper.instance, question)
        except InspectionFailed as error:
            unanswered[keeper.provider] = str(error)
            continue
        if not page.given:
            unanswered[keeper.provider] = "it cannot list people"
            continue
        more = more or page.more
        by_provider[keeper.provider] = [
            _build_person(keeper.provider, owner) for owner in page.owners
        ]
    merged = merge_people(by_provider)
    return People(tuple(merged[:most]), more or len(merged) > most, unanswered)


def _build_person(provider: str, owner: Mapping[str, object]) -> Person:
    given = {name: str(owner.get(name, "")) for name in ("agent", "user", "workspace")}
    count = owner.get("memories")
    return Person(**given, memories={provider: count if isinstance(count, int) else None})


def merge_people(by_provider: Mapping[str, Iterable[Person]]) -> list[Person]:
    """Merge the sorted people of several providers, each person once; pure."""
    people: list[Person] = []
    for person in heapq.merge(*by_provider.values(), key=lambda each: each.owner):
        if people and people[-1].owner == person.owner:
            both = people[-1].memories | person.memories
            people[-1] = msgspec.structs.replace(person, memories=both)
        else:
            people.append(person)
    return people


def list_memories(
    settings: Settings,
    provider: str,
    owner: RecallRequest,
    *,
    skip: int = 0,
    containing: str = "",
    most: int = PAGE,
    archived: bool = False,
    clock: Clock = SYSTEM,
) -> Memories:
    """Return a page of what a provider keeps of somebody.

    Args:
        provider: the provider's name; its live instance is asked.
        owner: the owner; only agent, user and workspace are used, and None stands for any.
        containing: only memories that contain this text, in any case, or come from the event of
            this id.

    Raises:
        ConfigError: there is no such provider, or it cannot list what it keeps.
        InspectionFailed: it cannot be asked.
    """
    keepers = {keeper.provider: keeper for keeper in list_providers(settings)}
    if provider not in keepers:
        names = ", ".join(keepers) or "none: start a worker (memorybus up)"
        raise ConfigError(f"there is no provider {provider!r}; there are: {names}")
    instance = keepers[provider].instance
    inspector = InstanceInspector(settings, clock)
    state = "archived" if archived else ""
    question = ReadKept(owner, skip, most, containing, curated=archived, state=state)
    page = inspector.ask(provider, instance, question)
    if not page.given:
        what = "keeps no states of memories" if archived else "cannot list the memories of a person"
        raise ConfigError(f"{provider} {what}")
    memories = msgspec.convert(page.memories, prepared(tuple[KeptMemory, ...]))
    return Memories(provider, memories, skip, page.more)
