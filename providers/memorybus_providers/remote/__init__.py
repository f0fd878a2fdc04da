"""Shared code of providers of services, so that a service's folder has only what is special to it.

- ``provider``: the base class, which opens and closes the client and runs tools. ``tool_calls``:
  the tools.
- ``own_options``: the options. ``credentials``, ``private_file``: secrets.
- ``http``: requests to a service that has no client. ``deadline``: the time that requests share.
  ``loop``: coroutines for callers that have no event loop.
- ``failures``: what a failed request means. ``rate_limit``: when a service may be asked again.
- ``names``: the names of owners and sessions. ``texts``, ``utterances``: what is sent of an event.
  ``replacement``: which entries a write replaces.

No module here knows a particular service. The folders of services import this one; it imports only
the provider contract.
"""
