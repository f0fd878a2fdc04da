"""Keeps track of calls into a provider: which call runs, what failed, and what to try next."""
