"""From an event to the log: the publisher spools it, the flusher sends it (G1, G2, G9).

This package imports the spool, the log and the requests for recalls, but no sessions. Clients hold
a publisher; workers use `orphans` to send the spools that dead processes left.
"""
