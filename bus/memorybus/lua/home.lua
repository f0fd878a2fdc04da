-- Say where a local provider's state lies, and change it if it is as the caller last saw it: two
-- workers that start at once agree on one home. Works also when the server is out of memory.
--
-- KEYS[1] hash   homes by provider.
-- ARGV: provider, what the caller saw ('' for none), what to write instead ('' for nothing).
-- Returns what was there before; false if nothing.
local now = redis.call('HGET', KEYS[1], ARGV[1])
if (now or '') == ARGV[2] then
  redis.call('HDEL', KEYS[1], ARGV[3] == '' and ARGV[1] or '')
  if ARGV[3] ~= '' then
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
  end
end
return now
