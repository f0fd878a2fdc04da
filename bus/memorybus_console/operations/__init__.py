"""The work of each command as a service that needs no terminal.

A service takes typed arguments, returns typed results and prints nothing. Commands and pages call
it. Each raises `LogUnavailable` if Redis is away, and `ArchiveError` if the history cannot be read;
`Raises:` names only other errors.
"""
