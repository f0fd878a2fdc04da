"""From an event to the log: publisher, spool, flusher, Redis (G1, G2, G9).

The spool, the log and the requests for recalls enter; sessions do not. Clients hold a
publisher, and workers send what dead processes left.
"""
