"""What could be wrong, each finding with its remedy, and one real event through the whole system.

It reads everything below and leaves nothing behind. `memorybus doctor` shows it.
"""
