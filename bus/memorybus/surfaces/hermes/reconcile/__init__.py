"""What Hermes has stored and the bus never got, found and published under ids of its own.

Stored transcripts, memory files and the history enter. `memorybus hermes reconcile` calls it;
others use the names below.
"""

from memorybus.surfaces.hermes.reconcile.reconcile import (
    ReconcileProgress,
    ReconcileReport,
    ReconcileRequest,
    Reconciliation,
)
from memorybus.surfaces.hermes.reconcile.view import report_parts

__all__ = [
    "ReconcileProgress",
    "ReconcileReport",
    "ReconcileRequest",
    "Reconciliation",
    "report_parts",
]
