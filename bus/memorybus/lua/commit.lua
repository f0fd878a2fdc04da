-- Advance a lane's checkpoint, if the caller is its present owner (G5).
--
-- KEYS[1] lane  hash: `epoch`, checkpoint `entry` and `n`, `at` when it last moved (ms).
-- KEYS[2] log   stream: the consumer group of the provider's name is set to the same place.
--
-- ARGV: epoch, entry, n, provider, '1' if the server knows XGROUP SETID … ENTRIESREAD (7.0).
-- Returns 1, or 0 if the epoch is not the lane's: nothing was written.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return 0
end
-- A script whose first write may run out of memory is refused by a full server. This one may not
-- (HDEL frees), and a lane that cannot record its progress would do its work again.
redis.call('HDEL', KEYS[1], '')
local time = redis.call('TIME')
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('HSET', KEYS[1], 'entry', ARGV[2], 'n', ARGV[3], 'at', now)
if ARGV[5] == '1' then
  redis.pcall('XGROUP', 'SETID', KEYS[2], ARGV[4], ARGV[2], 'ENTRIESREAD', ARGV[3])
else
  redis.pcall('XGROUP', 'SETID', KEYS[2], ARGV[4], ARGV[2])
end
return 1
