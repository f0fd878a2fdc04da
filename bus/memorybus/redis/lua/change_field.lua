-- Change a field of a hash if it is as the caller last saw it, in one step: two workers that start at
-- once agree on one home, and of two swaps one is first. A command that has lost its lock changes
-- nothing: one that was frozen meanwhile does no harm when it wakes (G8). It also works when the
-- server is out of memory.
--
-- KEYS[1] hash   homes, instances, which of these serve or stand still, or a slot's warm results.
-- KEYS[2] fence  string: which command may change that hash, in the same slot; left out by those who
--                need no lock.
-- ARGV: field, what to write instead ('' for nothing), what the fence must hold, what the caller saw
--       ('' for none; left out: whatever it is).
-- Returns what was there before; false if nothing; -1 if the fence is not the caller's.
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
