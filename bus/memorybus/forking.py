"""Forks and SQLite: a process does not fork while one of our threads is inside SQLite (G9).

SQLite's own locks are the process's. One that another thread holds at a fork is held for ever in
the child, which then hangs when it opens its spool: seen once in some thousand forks of a process
that publishes. So users of SQLite that run beside an agent's thread say when they do, and a fork
waits until none does.
"""

import os
import threading
from functools import cache

_PATIENCE = 1.0
"""Seconds that a fork waits at most: a disk that hangs shall not hang the process as well."""


class Undisturbed:
    """A context in which no fork begins. Entering is cheap, also by several threads at once."""

    def __init__(self) -> None:
        """Disturb nobody yet."""
        self._users = 0
        self._changed = threading.Condition(threading.Lock())

    def __enter__(self) -> None:
        """Wait for a fork that is under way; then count as a user."""
        with self._changed:
            self._users += 1

    def __exit__(self, *_: object) -> None:
        """Be no user any more."""
        with self._changed:
            self._users -= 1
            if not self._users:
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until there is no user, and let none begin."""
        self._changed.acquire()
        self._changed.wait_for(lambda: not self._users, _PATIENCE)

    def after_in_parent(self) -> None:
        """Let users begin again."""
        self._changed.release()

    def after_in_child(self) -> None:
        """Begin anew: the users were threads of the parent."""
        self._users = 0
        self._changed = threading.Condition(threading.Lock())


@cache
def undisturbed() -> Undisturbed:
    """Return the one of this process, which its forks heed from now on."""
    one = Undisturbed()
    os.register_at_fork(
        before=one.before_fork,
        after_in_parent=one.after_in_parent,
        after_in_child=one.after_in_child,
    )
    return one
