"""How the bus does: depth, progress, memory, losses and failures, each with its remedy.

It reads everything below and changes nothing. `status`, `doctor`, the alarms of workers and the
demo show it.
"""
