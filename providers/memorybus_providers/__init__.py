"""Memory providers: the contract (`base`), the registry, the contract suite and the backends."""
