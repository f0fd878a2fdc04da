"""The shipped contract, run on the Hindsight provider and a fake of its server."""

from typing import Any, ClassVar

from helpers.providers.service_contract import ServiceContract
from helpers.services.fake_hindsight import fake_hindsight


class TestHindsight(ServiceContract):
    kind = "hindsight"
    server = staticmethod(fake_hindsight)


class TestHindsightQueued(TestHindsight):
    """The contract holds where Hindsight queues what it is given, too."""

    options: ClassVar[dict[str, Any]] = {"queued": True}
