"""The services that providers keep memories in, each with a fake of it on loopback."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from helpers.services.fake_hindsight import fake_hindsight
from helpers.services.fake_mem0 import fake_mem0
from helpers.services.faulty_http import Fault
from helpers.services.honcho_server import honcho_server
from helpers.services.mentisdb_server import mentisdb_server


class Service(NamedTuple):
    """A service, and how its fake is used.

    Attributes:
        kind: the provider's.
        serving: serves the fake while a block runs.
        write: how the path of a request ends that stores something.
        search: how that of a recall ends.
        heavy: a module of its client, which no look at options loads.
        options: of the instances, beside the address.
        key: how a key is sent.
        why: the field of an answer that says why something is refused.
    """

    kind: str
    serving: Callable[[], AbstractContextManager[Any]]
    write: str
    search: str
    heavy: str
    options: Mapping[str, Any] = {}
    key: str = "Bearer {}"
    why: str = "detail"

    def fault(self, kind: Any, headers: Mapping[str, str] = {}, body: Any = "no") -> Fault:
        """Return how its next write fails."""
        return Fault(self.write, kind, headers, {self.why: body}, "POST")


HINDSIGHT = Service(
    "hindsight", fake_hindsight, "/memories", "/memories/recall", "hindsight_client"
)
SERVICES = {
    "hindsight": HINDSIGHT,
    "hindsight, queued": HINDSIGHT._replace(options={"queued": True}),
    "mem0": Service(
        "mem0-server", fake_mem0, "/memories", "/search", "urllib3", {"infer": False}, "{}"
    ),
    "honcho": Service("honcho", honcho_server, "/messages", "/search", "honcho"),
    "mentisdb": Service(
        "mentisdb", mentisdb_server, "/v1/thoughts", "/v1/ranked-search", "urllib3", why="error"
    ),
}
