"""As in Hermes: a regular package."""
