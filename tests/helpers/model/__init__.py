"""The world of the state machine over the whole bus."""
