-- Prolong an entry of a command's lock, or delete it, if it is still the caller's. An expired entry
-- is not made again, and that of another command is not changed.
--
-- KEYS[1] entry  string, with a time to live.
-- ARGV: the value it must have, how long it lives from now on (ms; 0: it is deleted).
-- Returns 1 if it was the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
