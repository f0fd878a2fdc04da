"""Access to Redis: keys, Lua scripts with typed functions, connections and clusters.

This package imports settings, errors, events and other basic modules, and does not know what the
keys mean to the packages above. Stores run their commands through it; the console and
workers open connections with it.
"""
