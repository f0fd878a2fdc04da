"""Shows operators what a prompt would be given now; no agent's recall uses this package."""
