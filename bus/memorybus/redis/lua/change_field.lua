-- Change a field of a hash if its value is the one that the caller saw last, in one step: so two
-- workers that start at the same time agree on one home, and of two swaps only the first succeeds.
-- A command that has lost its lock changes nothing, so one that was frozen does no harm when it
-- continues (G8). The script also works when the server is out of memory.
--
-- KEYS[1] hash   homes, instances, live, pauses, curator, or a slot's warm results.
-- KEYS[2] fence  string, in the same slot: the command that may change the hash; left out by
--                callers that need no lock.
-- ARGV: field, the new value ('' to delete the field), the value that the fence must have, the
--       value that the caller saw ('' for none; left out if it does not matter).
-- Returns the value from before; false if there was none; -1 if the fence is not the caller's.
if KEYS[2] and redis.call('GET', KEYS[2]) ~= ARGV[3] then
  return -1
end
local now = redis.call('HGET', KEYS[1], ARGV[1])
if not ARGV[4] or (now or '') == ARGV[4] then
  redis.call('HDEL', KEYS[1], ARGV[2] == '' and ARGV[1] or '')
  if ARGV[2] ~= '' then
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  end
end
return now
