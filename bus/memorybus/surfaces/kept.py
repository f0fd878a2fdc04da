"""The word by which a generation that is kept for a rollback is known: nothing of it waits."""

KEPT = "kept for"
"""How the reason begins for which it stands still."""
