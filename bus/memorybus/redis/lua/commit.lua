-- Advance a lane's checkpoint, if the caller is its present owner (G5).
--
-- KEYS[1] lane  hash: `epoch`, `run` (see acquire.lua), checkpoint `entry` and `n`, `done` (the
--               later events that are done already), `sent` (the highest n that may have been
--               handed to the provider), `at` when it was last written (ms); `deaths` is deleted
--               when the checkpoint advances.
-- KEYS[2] log   stream: the consumer group of the provider's name is set to the same place.
--
-- ARGV: epoch, entry, n, provider, done ('' for nothing), sent ('' if nothing is sent in advance).
-- Returns 1, or 0 if the epoch is not the lane's, or if another server, or this one before a
-- restart, gave it: nothing is written then, since a restarted server may have given the numbers of
-- `done` to other events.
local was = redis.call('HMGET', KEYS[1], 'epoch', 'n', 'done', 'run')
if was[1] ~= ARGV[1] or restarted(was[4]) then
  return 0
end
-- A full server refuses a script if its first write needs memory. HDEL frees memory, so with it the
-- script is accepted; a lane that could not record its progress would do its work again.
redis.call('HDEL', KEYS[1], '')
local now = string.format('%d', now_ms())
redis.call('HSET', KEYS[1], 'entry', ARGV[2], 'n', ARGV[3], 'at', now)
if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[1], 'done', ARGV[5])
elseif was[3] then
  redis.call('HDEL', KEYS[1], 'done')
end
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[1], 'sent', ARGV[6])
end
if tonumber(ARGV[3]) > tonumber(was[2] or '0') then
  redis.call('HDEL', KEYS[1], 'deaths')
end
if was[2] ~= ARGV[3] then
  if redis.REDIS_VERSION_NUM then -- since 7.0, as is ENTRIESREAD
    redis.pcall('XGROUP', 'SETID', KEYS[2], ARGV[4], ARGV[2], 'ENTRIESREAD', ARGV[3])
  else
    redis.pcall('XGROUP', 'SETID', KEYS[2], ARGV[4], ARGV[2])
  end
end
return 1
