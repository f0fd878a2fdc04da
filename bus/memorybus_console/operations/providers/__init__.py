"""Sets up, adds, tries, limits, retries, pauses, resumes, moves and removes provider instances.

It changes the settings file, and what Redis holds of an instance. Commands and the page use it.
"""
