"""How fast workers apply the log to providers, and how soon after an event was published.

The drain of a full log is measured with providers that do nothing, that write, that are slow and
that compute, by one worker process and by several. `recovery` measures how long it takes until
another worker goes on after a kill.
"""
