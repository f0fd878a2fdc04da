"""The shipped contract, run on the Honcho provider with its real client against a fake server."""

from importlib.util import find_spec

import pytest
from helpers.providers.service_contract import ServiceContract
from helpers.services.honcho_server import honcho_server

pytestmark = pytest.mark.skipif(find_spec("honcho") is None, reason="needs the extra honcho")


class TestHoncho(ServiceContract):
    kind = "honcho"
    server = staticmethod(honcho_server)
