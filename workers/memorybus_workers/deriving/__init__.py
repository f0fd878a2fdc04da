"""Asks derivers for conclusions of sessions that are due, and publishes these as events.

Which sessions are due is in the store of facts, in the transaction that applied the cause. So the
list survives whatever happens to a worker or to Redis, and there is no queue that could lose or
repeat a job: what is not settled is derived again, under the same ids.
"""
