"""The commands ``memorybus hermes``: they install the plugin, show its status and reconcile.

Hermes's packages and the setup of providers enter. Only the root command imports them.
"""
