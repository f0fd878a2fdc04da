"""What other memories export, parsed into events: one module for each source, pure.

Bytes or pages of JSON enter. A record that is not as its source documents it is refused with its
place, and the others go on: these files come from programs that nobody here controls.
"""
