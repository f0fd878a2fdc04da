"""Adapters for unchanged providers of other contracts: one module or package for each contract."""
