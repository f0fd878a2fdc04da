"""How the bus does: figures (depth, progress, memory, losses) and findings, each with its remedy.

It reads everything below and changes nothing. `read_status` looks once; `status`, `doctor` and the
demo show what it returns. A worker's watch looks at the log alone (`log_health`).
"""
