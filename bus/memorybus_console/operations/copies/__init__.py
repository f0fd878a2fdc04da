"""Plans, fills, counts and drops copies of provider instances, and knows their generations.

It uses the history, the registry and a worker process of the command. The commands replay, rebuild
and provider are built on it.
"""
