"""The commands ``memorybus hermes``: they install the plugin, show its status and reconcile.

They import Hermes's packages and the setup of providers. Only the root command imports them.
"""
