"""The life of provider instances: added, paused, resumed, moved and removed.

It changes the configuration file and what Redis holds of an instance. Only commands call it.
"""
