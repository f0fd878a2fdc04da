"""Tells people of findings: a webhook and a command, each once when one begins and once it is over.

What a finding is, health says; here is whom to tell, when, and what. Workers' supervisors run it,
and `memorybus notify test`.
"""
