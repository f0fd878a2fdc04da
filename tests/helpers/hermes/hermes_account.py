"""What people said to the real Hermes, to be compared with the log."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from memorybus.events import MemoryWritten, SessionSwitched, TurnCompleted

from helpers.hermes.hermes_agent import Hermes
from helpers.hermes.hermes_world import World
from helpers.processes.waiting import wait_until

Said = tuple[str, str, str]
"""A person, a session and words."""


class Account:
    """The turns of some sessions that were answered and not taken back.

    Attributes:
        stays: these turns, in their order.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.stays: list[Said] = []
        self._said: list[Said] = []

    def say(self, hermes: Hermes, *texts: str) -> None:
        """Have turns at the prompt."""
        for text in texts:
            hermes.chat(text)
            self.note("default", hermes.session, text)

    def write(self, hermes: Hermes, user: str, session: str, text: str, **given: Any) -> None:
        """Send a message to a gateway."""
        hermes.do("message", session=session, user=user, text=text, **given)
        self.note(user, hermes.session, text)

    def note(self, user: str, session: str, text: str) -> None:
        """Note a turn that was answered."""
        self.stays.append((user, session, text))
        self._said.append((user, session, text))

    def undo(self, hermes: Hermes, turns: int = 1) -> None:
        """Take the newest turns back at the prompt."""
        hermes.slash(f"/undo {turns}")
        del self.stays[-turns:]

    def retry(self, hermes: Hermes) -> bool:
        """Refuse the last answer; the same words are answered again.

        Returns:
            Whether the refused one is gone; 0.19 leaves it in its store.
        """
        marked = bool(hermes.do("retry")["marked"])
        self.stays += [] if marked else self.stays[-1:]
        return marked

    def mistakes(self) -> Mapping[str, list[Said]]:
        """Return the turns that the log lacks, has twice, or has elsewhere; {} if there are none.

        A turn that was taken back and still stands is counted as doubled.
        """
        retracted = {
            event_id for e in self._world.events(SessionSwitched) for event_id in e.event.retracted
        }
        logged = Counter(
            (e.scope.user, e.session.id, e.event.user)
            for e in self._world.events(TurnCompleted)
            if e.id not in retracted
        )
        wanted = Counter(self.stays)
        own = {part for _, *parts in self._said for part in parts}
        extra = {turn for turn in logged - wanted if own.intersection(turn[1:])}
        lacking = wanted - logged
        words = {text for _, _, text in lacking}
        wrong = {
            "lost": [turn for turn in lacking if turn[2] not in {text for *_, text in extra}],
            "doubled": [turn for turn in extra if turn[2] not in words],
            "misfiled": [turn for turn in extra if turn[2] in words],
        }
        return {name: turns for name, turns in wrong.items() if turns}

    def _check(self) -> None:
        wrong = {name: [turn[-1][:40] for turn in turns] for name, turns in self.mistakes().items()}
        assert not wrong, wrong

    def settle(self) -> None:
        """Wait until the log has what was said: nothing lost, doubled or misfiled."""
        with suppress(AssertionError):
            wait_until(lambda: not self.mistakes(), "there are no mistakes", 60)
        self._check()

    def close(self) -> None:
        """After the last process has ended, nothing is wrong, missing or falsely undone.

        Neither `reconcile` nor a second `reconcile` changes that.
        """
        self._world.drain()
        self._check()
        for _ in range(2):
            report = self._world.reconcile()
            assert (report["missing"], report["undone"], report["memories"]) == (0, 0, 0), report
        self._world.drain()
        self._check()


def written(world: World, store: str) -> list[str]:
    """Return the entries that the writes in the log lead to, in their order."""
    entries: list[str] = []
    for envelope in world.events(MemoryWritten):
        write = envelope.event
        if write.store != store:
            continue
        at = len(entries)
        if write.action != "add":
            [at] = [n for n, entry in enumerate(entries) if write.old_text in entry]
        entries[at : at + 1] = [] if write.action == "remove" else [write.content]
    return entries


def stored(world: World, name: str) -> list[str]:
    """Return the entries of one of Hermes's memory files."""
    return (world.home.path / "memories" / name).read_text().split("\n§\n")
