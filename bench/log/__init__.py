"""What it costs an agent to bring an event into the log, and what the event takes in Redis.

Publishing is compared with a bare XADD, and with what one would use without the bus: RQ, or a
thread per event. `extras` has figures beside them that have no bound.
"""
