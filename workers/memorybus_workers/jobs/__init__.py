"""RQ jobs: JSON arguments, an allow-list of callables."""
