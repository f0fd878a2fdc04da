"""Fakes of memory services that cannot run here, on loopback."""
