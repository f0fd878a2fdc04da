"""Brings events into the log: the publisher spools them, the flusher sends them (G1, G2, G9).

This package imports the spool, the log and the requests for recalls, but not the agent's sessions.
Clients hold a publisher; workers use `orphans` to send the spools that dead processes left.
"""
