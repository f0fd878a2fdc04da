"""Worker processes: lanes, leases, the applier, recall jobs."""
