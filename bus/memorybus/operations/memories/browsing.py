"""Looks through what providers keep: of whom, and what, page by page.

The providers themselves are asked, where their state is (`jobs.inspect`): nobody else knows what
they keep, and no second index of people is kept anywhere.
"""

import heapq
from collections.abc import Iterable, Mapping

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, NoWorker
from memorybus.jobs.inspect import InspectionFailed, InstanceInspector
from memorybus.operations.stores import Stores
from memorybus.recall.model import RecallRequest
from memorybus.registry.instances import live_name

PAGE = 50
"""People, and memories, of a page."""

Owner = tuple[str, str, str]
"""Agent, person and workspace."""


class Keeper(msgspec.Struct, frozen=True):
    """A provider that keeps memories.

    Attributes:
        provider: its name.
        instance: the instance that serves it.
        exports: whether it can say what it keeps of somebody.
        served: whether a live worker can be asked.
    """

    provider: str
    instance: str
    exports: bool
    served: bool


class Person(msgspec.Struct, frozen=True):
    """Somebody of whom something is kept.

    Attributes:
        agent: the agent.
        user: the person.
        workspace: the project; "" for none.
        memories: how many each provider keeps; None if it does not count them.
    """

    agent: str
    user: str
    workspace: str
    memories: dict[str, int | None]

    @property
    def owner(self) -> Owner:
        """The three names."""
        return self.agent, self.user, self.workspace


class People(msgspec.Struct, frozen=True):
    """A page of people.

    Attributes:
        people: by agent, person and workspace.
        more: whether there are others behind them.
        silent: the providers that cannot say, with the reason.
    """

    people: tuple[Person, ...]
    more: bool
    silent: dict[str, str]


class KeptMemory(msgspec.Struct, frozen=True):
    """One memory as its provider keeps it; see a provider's `StoredMemory`.

    Attributes:
        text: verbatim: hostile data.
        agent, user, workspace: whose.
        kind: what it is, in its provider's word.
        session: where it comes from.
        at: when, milliseconds; 0 if unknown.
        speaker: who said it.
        event: id of the event that brought it; "" if its provider does not know.
        until: when something newer took its place, milliseconds; 0 if it holds.
        name: what its provider's tools call it; "" if they have no name for it.
    """

    text: str
    agent: str = ""
    user: str = ""
    workspace: str = ""
    kind: str = ""
    session: str = ""
    at: int = 0
    speaker: str = ""
    event: str = ""
    until: int = 0
    name: str = ""


class Memories(msgspec.Struct, frozen=True):
    """A page of what one provider keeps of somebody.

    Attributes:
        provider: whose.
        memories: in the provider's order.
        skipped: how many stand before them.
        more: whether there are others behind them.
    """

    provider: str
    memories: tuple[KeptMemory, ...]
    skipped: int
    more: bool


def keepers(settings: Settings) -> list[Keeper]:
    """Return the providers that agents know, in the order of recall.

    Raises:
        LogError: Redis is away, or the log is another one.
    """
    with Stores(settings) as stores:
        stores.check()
        live = stores.instances.live()
        served = stores.roster.job_providers()
        return [
            Keeper(name, live_name(name, live), info.exports, name in served)
            for name, info in stores.roster.providers().items()
        ]


def first_keeper(settings: Settings) -> str:
    """Return the first provider that can be asked what it keeps.

    Raises:
        NoWorker: no worker serves one.
        LogError: Redis is away.
    """
    return first_of(keepers(settings))


def first_of(known: Iterable[Keeper]) -> str:
    """Return the first of some providers that can be asked what it keeps; pure.

    Raises:
        NoWorker: no worker serves one.
    """
    for keeper in known:
        if keeper.exports and keeper.served:
            return keeper.provider
    raise NoWorker(
        "no live worker serves a provider that can say what it keeps; start one: memorybus up"
    )


def people(
    settings: Settings,
    after: Owner | None = None,
    *,
    holding: str = "",
    most: int = PAGE,
    clock: Clock = SYSTEM,
) -> People:
    """Return of whom something is kept, as those providers say that can tell.

    Args:
        settings: which bus.
        after: only who stands behind this one.
        holding: only whose names hold this text, in any case.
        most: at most so many.
        clock: time.

    Raises:
        LogError: Redis is away.
    """
    found: dict[str, list[Person]] = {}
    silent: dict[str, str] = {}
    more = False
    behind = (
        RecallRequest(query="", agent=after[0], user=after[1], workspace=after[2])
        if after
        else None
    )
    for keeper in keepers(settings):
        try:
            inspector = InstanceInspector(settings, clock)
            page = inspector.owners(
                *(keeper.provider, keeper.instance, behind), most=most, holding=holding
            )
        except InspectionFailed as error:
            silent[keeper.provider] = str(error)
            continue
        if not page.given:
            silent[keeper.provider] = "it cannot say of whom it keeps something"
            continue
        more = more or page.more
        found[keeper.provider] = [_person(keeper.provider, one) for one in page.owners]
    merged = joined(found)
    return People(tuple(merged[:most]), more or len(merged) > most, silent)


def _person(provider: str, owner: Mapping[str, object]) -> Person:
    given = {name: str(owner.get(name, "")) for name in ("agent", "user", "workspace")}
    count = owner.get("memories")
    return Person(**given, memories={provider: count if isinstance(count, int) else None})


def joined(found: Mapping[str, Iterable[Person]]) -> list[Person]:
    """Return the people of several providers in one order, each once; pure."""
    people: list[Person] = []
    for one in heapq.merge(*found.values(), key=lambda person: person.owner):
        if people and people[-1].owner == one.owner:
            both = people[-1].memories | one.memories
            people[-1] = msgspec.structs.replace(one, memories=both)
        else:
            people.append(one)
    return people


def memories(
    settings: Settings,
    provider: str,
    whose: RecallRequest,
    *,
    skip: int = 0,
    holding: str = "",
    most: int = PAGE,
    clock: Clock = SYSTEM,
) -> Memories:
    """Return a page of what a provider keeps of somebody.

    Args:
        settings: which bus.
        provider: its name; the instance that serves it is asked.
        whose: of whom; only its agent, user and workspace are looked at, None for everyone's.
        skip: so many that were seen before.
        holding: only what holds this text, in any case, or came by the event of this id.
        most: at most so many.
        clock: time.

    Raises:
        ConfigError: there is no such provider, or it cannot say what it keeps.
        InspectionFailed: it cannot be asked.
        LogError: Redis is away.
    """
    known = {keeper.provider: keeper for keeper in keepers(settings)}
    if provider not in known:
        names = ", ".join(known) or "none: start a worker (memorybus up)"
        raise ConfigError(f"there is no provider {provider!r}; there are: {names}")
    instance = known[provider].instance
    inspector = InstanceInspector(settings, clock)
    page = inspector.read_kept(provider, instance, whose, skip, most=most, holding=holding)
    if not page.given:
        raise ConfigError(f"{provider} cannot say what it keeps of somebody")
    found = msgspec.convert(page.memories, tuple[KeptMemory, ...])
    return Memories(provider, found, skip, page.more)
