"""The shipped contract, run on the provider for Mem0's server and a fake of it."""

from typing import Any, ClassVar

from helpers.providers.service_contract import ServiceContract
from helpers.services.fake_mem0 import fake_mem0


class TestMem0Server(ServiceContract):
    kind = "mem0-server"
    server = staticmethod(fake_mem0)


class TestMem0ServerVerbatim(TestMem0Server):
    """The contract holds where nothing is inferred, too."""

    options: ClassVar[dict[str, Any]] = {"infer": False}
