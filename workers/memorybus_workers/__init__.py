"""The worker processes: they apply the log's events to providers, and run the recall jobs."""
