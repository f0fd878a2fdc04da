"""The worker processes: they apply the log's events to providers, and run the recall jobs.

The bus and the provider contract enter. The command line starts workers as processes; nothing
imports this package.
"""
