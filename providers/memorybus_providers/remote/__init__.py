"""Shared code of providers of services, so that a service's folder has only what is special to it.

- ``provider``: the base class, which opens and closes the client and runs tools.
- ``options``: options and keys. ``texts``: what is sent of an event, and under which names.
- ``http``: requests to a service that has no client, failures, pauses and deadlines.
- ``loop``: coroutines for callers that have no event loop.

No module here knows a particular service. The folders of services import this one; it imports only
the provider contract.
"""
