"""The state of the bus: figures (depth, progress, memory, losses) and findings with remedies.

This package may import everything below it, and changes nothing. `read_status` reads the whole
state; `status`, `doctor` and the demo show it. Each worker watches only the log (`log_health`).
"""
