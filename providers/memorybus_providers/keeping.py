"""What a provider keeps of somebody: exported memories, their owners, what an erasure left."""

import msgspec


class StoredMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a provider keeps, as `MemoryProvider.export` yields it.

    Attributes:
        text: verbatim, as the backend has it.
        agent: the agent; empty if it belongs to no single agent.
        user: the person; empty if it belongs to no single person.
        workspace: the project.
        kind: the backend's own word for its kind ("fact", "conclusion"); empty if it has none.
        session: the session it comes from; empty if unknown.
        at: when it was said or written, milliseconds; 0 if unknown.
        speaker: who said it; empty if unknown.
        event: id of the event that brought it; empty if the provider does not know.
        until: when something newer replaced it, milliseconds; 0 if it is current.
        name: its name in the provider's tools; empty if they have none for it.
        former: whether it is what an entry said before it was replaced or removed; the agent and
            operators can change it no more.
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
    former: bool = False


class MemoryOwner(msgspec.Struct, frozen=True, omit_defaults=True):
    """An owner of whom a provider keeps memories.

    Attributes:
        agent: the agent.
        user: the person.
        workspace: the project; empty for none.
        memories: how many there are; None if counting would take long.
    """

    agent: str
    user: str
    workspace: str = ""
    memories: int | None = None


class Residue(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an erasure left, as far as the provider knows.

    Attributes:
        erased: how many memories it erased, as the backend counts them; None if unknown.
        remains: what it could not erase: for each a sentence with the place, what is there and what
            an operator can do, without any of the erased texts. Empty if nothing is left.
    """

    erased: int | None = None
    remains: tuple[str, ...] = ()
