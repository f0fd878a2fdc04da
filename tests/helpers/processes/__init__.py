"""Child processes, clocks, disks and waits of tests."""
