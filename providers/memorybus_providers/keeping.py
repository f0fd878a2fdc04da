"""What a provider keeps of somebody, given out or erased."""

import msgspec


class StoredMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a provider keeps, as `MemoryProvider.export` yields it.

    Attributes:
        text: verbatim, as the backend has it.
        agent: whose memory it is, empty if it is of no one agent.
        user: the person, empty if it is of no one person.
        workspace: the project.
        kind: what it is, in the backend's own word ("fact", "conclusion"); empty if it has none.
        session: where it comes from, empty if unknown.
        at: when it was said or written, milliseconds; 0 if unknown.
        speaker: who said it, empty if unknown.
        event: id of the event that brought it, empty if the provider does not know.
        until: when something newer took its place, milliseconds; 0 if it holds.
        name: what its provider's tools call it; empty if they have no name for it.
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


class MemoryOwner(msgspec.Struct, frozen=True, omit_defaults=True):
    """Somebody of whom a provider keeps memories.

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
    """What an erasure left: a provider says all that it knows of.

    Attributes:
        erased: how many memories it erased, as the backend counts them; None if it does not say.
        remains: what it could not reach, a sentence each, which names the place, what is there and
            what an operator can do. Nothing of the erased texts is in it. Empty: nothing is left.
    """

    erased: int | None = None
    remains: tuple[str, ...] = ()
