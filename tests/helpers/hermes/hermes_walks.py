"""A program for Hermes's own Python: random conversations on its real ``state.db`` code.

The arguments are a seed and the number of conversations. In each the person talks, takes turns back
and says them again, while Hermes compresses, rotates, and makes new instances and processes. It
prints the conversations in which the bus has retracted other turns than the person took back.
"""

import json
import random
import sys
from typing import Any

from memorybus.events import SessionSwitched, TurnCompleted
from memorybus.testing import FakeClock
from memorybus_hermes.transcripts.scaffolding import spoken_text

from helpers.hermes.hermes_plugin import Host, hermes_host

_PREFIX = "[CONTEXT COMPACTION — REFERENCE ONLY] What was said before:\n## Goal\nnone"
_END = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
_SUMMARY = f"{_PREFIX}\n\n{_END}"
_BELOW = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
_PRIOR = "[PRIOR CONTEXT — for reference only; not a new message]"
_STEPS = 14


class Walk:
    """One conversation.

    Attributes:
        window: the numbers of the turns whose messages are in the window, with each message's role.
        taken: the numbers of the turns that the person took back.
        steps: what happened, for people.
    """

    def __init__(self, host: Host, clock: FakeClock, rng: random.Random) -> None:
        from hermes_state import SessionDB

        self.host, self.clock, self.rng = host, clock, rng
        self.path = host.home / "state.db"
        self.db: Any = SessionDB(self.path)
        self.is_new = hasattr(self.db, "rewind_user_turn")
        self.session, self.sessions = "s0", 0
        self.db.create_session(self.session, "cli", model="m")
        self.window: list[tuple[str, int]] = []
        self.taken: set[int] = set()
        self.said = 0
        self.steps: list[str] = []
        self.memory = host.instance(self.session)

    def step(self) -> None:
        """Do one thing at random."""
        acts = [self.say] * 5 + [self.compress] * 2 + [self.undo, self.gateway_undo, self.retry]
        act = self.rng.choice([*acts, self.rotate, self.resume, self.restart])
        self.steps.append(act.__name__)
        act()

    def say(self, words: str = "") -> None:
        """Have a turn; some words are said often.

        Not in 0.19, which gives a carried message a new time: nothing shows which one it was.
        """
        number, self.said = self.said, self.said + 1
        interrupted = self.rng.random() < 0.1
        often = ("ok", "thanks") if self.is_new and not interrupted else ()
        words = words or self.rng.choice((*often, f"words {number}", f"words {number}"))
        self.steps.append(words)
        self.clock.advance(60)
        at = self.clock.now_ms() / 1000
        self.memory.on_turn_start(number, words)
        self.db.append_message(self.session, "user", words, timestamp=at)
        if interrupted:
            self.window.append(("user", -1))  # interrupted: Hermes does not hand it over
            self.db.append_message(
                self.session, "assistant", "Operation interrupted.", timestamp=at + 1
            )
            self.window.append(("assistant", -1))
            return
        self.db.append_message(self.session, "assistant", f"answer {number}", timestamp=at + 1)
        self.window += [("user", number), ("assistant", number)]
        self.memory.sync_turn(words, f"answer {number}", session_id=self.session)

    def _compacted(self) -> tuple[list[dict[str, Any]], int]:
        """Return the window with a summary of its middle, and the length of its end."""
        live = self.db.get_messages_as_conversation(self.session)
        assert len(live) == len(self.window), (self.steps, live, self.window)
        head = self.rng.randrange(4)
        starts = [i for i, (role, _) in enumerate(self.window) if role == "user" and i > head]
        tail = self.rng.choice(starts[-4:]) if starts else len(live)
        for message in () if self.is_new else live:
            message.pop("timestamp", None)  # 0.19 stamps what it holds in memory anew
        before, after = live[:head], live[tail:]
        window = [*self.window[:head], *self.window[tail:]]
        if after and head % 2 == 0 and self.rng.random() < 0.4:
            words = spoken_text(after[0]["content"])
            merged = (
                f"{_SUMMARY}\n\n{words}"
                if self.is_new
                else f"{_PRIOR}\n{words}\n\n{_BELOW}\n\n{_SUMMARY}"
            )
            after[0] = {**after[0], "content": merged, "_compressed_summary": True}
        else:
            before.append({"role": "assistant", "content": _SUMMARY, "_compressed_summary": True})
            window.insert(head, ("assistant", -1))
        self.window = window
        return [*before, *after], len(after)

    def compress(self) -> None:
        """Compress in place; a gateway does it without a memory provider."""
        if len(self.window) < 6:
            return
        messages, tail = self._compacted()
        self.db.archive_and_compact(
            self.session, messages, **({"tail_count": tail} if self.is_new else {})
        )
        if self.rng.random() < 0.7:
            self.memory.on_pre_compress(messages)
            self.memory.on_session_switch(
                self.session, parent_session_id=self.session, reason="compression"
            )

    def rotate(self) -> None:
        """Compress into another session."""
        if len(self.window) < 6:
            return
        messages, _ = self._compacted()
        old, self.sessions = self.session, self.sessions + 1
        self.session = f"s{self.sessions}"
        if self.is_new:
            self.db.publish_compression_child(
                parent_session_id=old,
                child_session_id=self.session,
                source="cli",
                messages=messages,
                require_compression_lease=False,
            )
        else:
            self.db.end_session(old, "compression")
            self.db.create_session(self.session, "cli", model="m", parent_session_id=old)
            for message in messages:
                self.db.append_message(self.session, message["role"], message["content"])
        self.memory.on_pre_compress(messages)
        self.memory.on_session_switch(self.session, parent_session_id=old, reason="compression")

    def _rewind(self, most: int) -> bool:
        """Take back turns in Hermes's store; say whether there were any."""
        starts = [i for i, (role, _) in enumerate(self.window) if role == "user"]
        if not starts:
            return False
        back = min(self.rng.randint(1, most), len(starts))
        cut = starts[-back]
        if self.is_new:
            try:
                self.db.rewind_user_turn(self.session, -back)
            except (RuntimeError, ValueError):
                return False  # Hermes refuses, too
        else:
            rows = [m for m in self.db.get_messages(self.session) if m["role"] == "user"]
            self.db.rewind_to_message(self.session, rows[-back]["id"])
        self.taken |= {turn for role, turn in self.window[cut:] if role == "user" and turn >= 0}
        self.window = self.window[:cut]
        left = self.db.get_messages_as_conversation(self.session)
        self.window += [("assistant", -1)] * (len(left) - len(self.window))  # a summary that stays
        return True

    def undo(self) -> None:
        """Take turns back at the prompt."""
        if self._rewind(3):
            self.memory.on_session_switch(self.session, parent_session_id="", rewound=True)

    def gateway_undo(self) -> None:
        """Take turns back in a gateway, which tells nobody and makes another instance."""
        if self._rewind(2):
            self.resume()

    def retry(self) -> None:
        """Say the last words again; no hook tells that the first answer was refused."""
        if self._rewind(1):
            self.say()

    def resume(self) -> None:
        """Make another instance of the session."""
        self.memory = self.host.instance(self.session)

    def restart(self) -> None:
        """Continue in another process: only the host's notes are left."""
        self.host.restart()
        self.resume()

    def mistakes(self) -> dict[str, list[int]]:
        """Return the turns that are wrongly retracted, and those that are wrongly not."""
        self.resume()
        numbers = {e.id: int(e.event.assistant.split()[1]) for e in self.host.events(TurnCompleted)}
        retracted = {
            numbers[one]
            for e in self.host.events(SessionSwitched)
            for one in e.event.retracted
            if one in numbers
        }
        return {
            "lost": sorted(retracted - self.taken),
            "kept": sorted(self.taken - retracted),
        }


def main() -> None:
    """Have the conversations; print the wrong ones."""
    seed, count = map(int, sys.argv[1:])
    wrong = []
    for number in range(seed, seed + count):
        clock = FakeClock()
        with hermes_host(clock=clock) as host:
            walk = Walk(host, clock, random.Random(number))
            for _ in range(_STEPS):
                walk.step()
            mistakes = walk.mistakes()
            walk.db.close()
        if any(mistakes.values()):
            wrong.append({"seed": number, **mistakes, "steps": walk.steps})
    json.dump(wrong, sys.stdout)


if __name__ == "__main__":
    main()
