"""The state of the bus: figures (depth, progress, memory, losses) and findings with remedies."""
