"""Forks, wake-ups and waits between attempts: the tools of code with several threads.

This package imports only the clock, never a store. Code that starts a thread or tries something
again uses it.
"""
