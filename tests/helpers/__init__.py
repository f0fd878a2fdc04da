"""What tests share: waiting, servers, child processes, leaked keys."""
