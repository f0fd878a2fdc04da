"""The local outbox of a producer: an event is in its SQLite file before `publish` returns (G1).

Nothing of Redis enters here; a spool knows its rows, its files and who owns them. The sending
side fills and empties it.
"""
