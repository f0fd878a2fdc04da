"""Dead letters: events that a provider refused finally, and operators' requests about them (G6)."""
