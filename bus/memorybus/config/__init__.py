"""The configuration: one frozen `Settings` from file, environment and arguments."""
