"""The configuration: one frozen `Settings` from file, environment and arguments.

This package imports only basic modules (errors, events, ids) and pure text functions. All packages
above receive a `Settings`; no other package reads the environment.
"""
