"""Providers written for other contracts, behind the bus unchanged: one module or package each."""
