"""The graph of sessions, as pure functions: which session continues which, and who owns each."""
