"""Which events are wanted: a query, the ranges of numbers it covers, and the filter made of both.

Pure values and functions; they know events and nothing of where these lie. The archive, the
history and the commands that replay or rebuild are asked with them.
"""
