"""Forks, wake-ups and waits between tries: what threads and processes need to live side by side.

Only the clock enters, never a store. Whoever starts a thread or tries again uses it.
"""
