"""What people and Hermes use: commands, views, a web page, a live view, and Hermes's plugin.

These modules may import everything of the bus, and leave all decisions to it. Nothing of the bus
imports this package.
"""
