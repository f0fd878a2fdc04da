"""The real Hermes in tests, its model, its state and its conversations."""
