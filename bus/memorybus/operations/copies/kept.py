"""The words by which generations are known that stand still for good: nothing of them waits."""

KEPT = "kept for memorybus rebuild --rollback"
"""How the reason begins for which one stands still that is kept."""

DROPPED = "dropped:"
"""How the reason begins for which the first of all stands still, once it is dropped."""
