"""What the long past costs: to keep it, to read in it, and to apply it again.

The past of these measurements is sealed into the archive (`past` makes it). A rebuild of a provider
out of it is measured beside live traffic.
"""
