"""What providers of services share, so that a service's folder holds only what is peculiar to it.

- ``provider``: the base class, which opens and closes the client and runs tools. ``tool_calls``:
  the tools.
- ``own_options``: the table of options. ``credentials``, ``private_file``: secrets.
- ``http``: requests to a service that has no client. ``deadline``: the time that requests share.
  ``loop``: coroutines for callers that have no event loop.
- ``failures``: what a failed request means. ``rate_limit``: when a service may be asked again.
- ``names``: the names of owners and sessions. ``texts``, ``utterances``, ``replacement``: what of
  an event is sent, and which entries it replaces.

No module here knows any one service. The folders of services import this one; it imports only the
provider contract.
"""
