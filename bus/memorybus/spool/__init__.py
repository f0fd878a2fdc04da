"""The local outbox of a producer: an event is in its SQLite file before `publish` returns (G1).

Nothing in this package knows Redis: a spool knows its rows, its files and who owns them. The
package `sending` fills it and empties it.
"""
