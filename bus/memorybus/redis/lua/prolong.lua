-- Prolong an entry of a command's lock, or take it away, if it is the caller's still: one that has
-- expired is not made again, and another's is left alone.
--
-- KEYS[1] entry  string, with a time to live.
-- ARGV: what it must hold, for how long it stands from now on (ms; 0: it goes).
-- Returns 1 if it was the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
