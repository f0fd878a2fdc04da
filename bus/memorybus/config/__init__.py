"""What a user has set: one frozen `Settings` from file, environment and arguments.

Only the words of the contract and pure text functions may enter. Everything above receives a
`Settings`; nobody else reads the environment.
"""
