"""Where an archive's files lie: a directory, or an object store, behind one small interface."""
