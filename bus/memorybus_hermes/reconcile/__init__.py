"""Finds what Hermes stored and the bus never got, and publishes it under ids derived from it.

This package reads stored transcripts, memory files and the history of the log.
`memorybus hermes reconcile` runs it. Other code may use only the names below.
"""

from memorybus_hermes.reconcile.reconcile import (
    ReconcileProgress,
    ReconcileReport,
    ReconcileRequest,
    Reconciliation,
)

__all__ = [
    "ReconcileProgress",
    "ReconcileReport",
    "ReconcileRequest",
    "Reconciliation",
]
