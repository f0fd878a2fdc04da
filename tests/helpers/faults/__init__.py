"""The fault suite: load, sinks, faults, and the verdict."""
