"""What providers cost by themselves, without the log and mostly without workers.

Measured are how fast they write and how fast they recall, among the facts of very many people.
`latency` puts a stretch of network before a server.
"""
