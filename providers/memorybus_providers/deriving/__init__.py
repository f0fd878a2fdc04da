"""Concludes from what is kept: the contract of a deriver, and the one that needs no model.

A deriver is a pure class: it gets what was said in a session, and returns conclusions with their
sources. A worker asks it, checks what it returns, and publishes it as `Derived` events. It knows no
store.
"""
