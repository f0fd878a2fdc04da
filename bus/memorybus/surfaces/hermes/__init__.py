"""Hermes Agent on the bus: its memory plugin, and what installs, shows and reconciles it."""
