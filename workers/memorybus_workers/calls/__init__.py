"""Calls into a provider as others see them: which runs, what failed, what to try next.

Nothing of lanes or Redis enters. Lanes, appliers and hosts use it.
"""
