"""The shipped contract, run on the MentisDB provider against a fake server."""

from helpers.providers.service_contract import ServiceContract
from helpers.services.mentisdb_server import mentisdb_server


class TestMentisDb(ServiceContract):
    kind = "mentisdb"
    server = staticmethod(mentisdb_server)
