"""Answers commands, which may not import providers: kinds, instances and trials.

This package uses instances that serve nobody, but no lane and no Redis. Each command is a separate
process of the workers' program, which prints its results as JSON lines.
"""
