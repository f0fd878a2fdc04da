"""What a user has set: one frozen `Settings` from file, environment and arguments.

It imports only the words of the contract and pure text functions. Everything above receives a
`Settings`; no other package reads the environment.
"""
