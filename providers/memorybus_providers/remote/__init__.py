"""What providers of services share, so that a service's folder holds only what is peculiar to it.

- ``provider``: the shell, a client's life and the way of tools. ``tool_calls``: the tools.
- ``own_options``: the table of options. ``credentials``, ``private_file``: secrets.
- ``http``: requests without a client. ``deadline``, ``loop``: their time, and coroutines'.
- ``failures``, ``rate_limit``: what a failure means, and when a service may be asked again.
- ``names``, ``texts``, ``utterances``, ``replacement``: what of an event is sent, and under which names.

Nothing of any one service. The folder of a service uses it; it uses the contract alone.
"""
