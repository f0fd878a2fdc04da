"""Forks, wake-ups and waits between attempts: what threads and processes need side by side.

Of the bus it imports only the clock, never a store. Whoever starts a thread or tries something
again uses it.
"""
