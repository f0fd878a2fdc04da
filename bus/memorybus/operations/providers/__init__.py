"""Provider instances: set up, added, tried, steered, paused, resumed, moved and removed.

It changes the settings file, and what Redis holds of an instance. Commands and the page use it.
"""
