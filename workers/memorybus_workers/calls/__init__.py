"""Calls into a provider as others see them: which runs, what failed, what to try next.

No lane enters, only the key of its lease. Redis enters where all workers count together
(`allowance`, `spending`), and its errors where blame is laid (`blame`). Lanes, appliers and hosts
use it.
"""
