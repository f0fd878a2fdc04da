"""What people use of the bus: operations, and the commands, views and pages that show them.

It stands above the bus, the workers, the providers and Hermes's plugin. An agent's process never
imports it.
"""
