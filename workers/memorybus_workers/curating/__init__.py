"""The curator: it decides which memories grow stale, are archived, or repeat each other.

What it decides are events, so that a rebuild repeats them and no replay decides anew.
"""
