"""Copies of provider instances, and generations: planned, filled from history, counted, dropped.

It uses the history, the registry and a worker process of the command. The commands replay, rebuild
and provider are built on it.
"""
