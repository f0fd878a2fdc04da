"""Brings events from an agent into the log: spooled first, then sent (G1, G2, G9).

The `publisher` inserts an event into its `spool`, a SQLite `database`; the `flusher`, a thread,
lets a `sender` move the rows into the log; `files` are the spools of a host and their owners;
`producers` is what Redis remembers of them; `rules` is what these share. An agent's process imports
Redis only on the flusher's thread. Clients hold a publisher; workers send the spools that dead
processes left.
"""
