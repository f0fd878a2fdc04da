"""Copies of provider instances and generations: made from history, filled, counted and dropped.

The history, the registry and a worker of our own enter. Replay, rebuild and the life of
providers are made of it.
"""
