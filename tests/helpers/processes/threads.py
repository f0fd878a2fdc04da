"""The same work on several threads at once."""

import threading
from collections.abc import Callable, Iterable
from typing import Any


def side_by_side(work: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> None:
    """Call something with each of the arguments, each on a thread; wait for all."""
    threads = [threading.Thread(target=work, args=given) for given in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
