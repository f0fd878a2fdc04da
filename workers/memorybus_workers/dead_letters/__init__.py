"""Carries out operators' requests about dead letters, as the owner of their lane (G5, G6)."""
