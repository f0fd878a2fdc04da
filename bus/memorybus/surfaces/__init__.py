"""What people and Hermes use: commands, views, a page, a live view, and Hermes's plugin.

Everything of the bus may enter, and whatever is decided is decided there. Nothing of the bus
imports this package.
"""
