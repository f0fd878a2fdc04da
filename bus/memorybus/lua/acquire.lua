-- Take a free lane: a lease that expires, and an epoch that only grows (G5).
--
-- KEYS[1] lease  string `epoch:worker`, with a time to live; the lane is taken while it exists.
-- KEYS[2] lane   hash: `epoch` is raised by one; `entry` and `n` are the checkpoint.
-- KEYS[3] log    stream: gets a consumer group of the provider's name, so that ordinary tools see
--                the lane's progress; the group is a mirror, nothing is ever read through it.
--
-- ARGV: worker, lease (ms), provider, floor: an epoch that the provider's own store has seen (if
--       Redis lost its count, the new epoch must still be above it).
-- Returns nil if the lane is taken, else {epoch, entry, n} ('0-0' and 0 at the beginning).
if redis.call('EXISTS', KEYS[1]) == 1 then
  return false
end
redis.call('HDEL', KEYS[2], '') -- so that a full server does not refuse what follows
local epoch = redis.call('HINCRBY', KEYS[2], 'epoch', 1)
if epoch <= tonumber(ARGV[4]) then
  epoch = tonumber(ARGV[4]) + 1
  redis.call('HSET', KEYS[2], 'epoch', string.format('%d', epoch))
end
redis.call('SET', KEYS[1], epoch .. ':' .. ARGV[1], 'PX', ARGV[2])
redis.pcall('XGROUP', 'CREATE', KEYS[3], ARGV[3], '0', 'MKSTREAM')
local checkpoint = redis.call('HMGET', KEYS[2], 'entry', 'n')
return {epoch, checkpoint[1] or '0-0', tonumber(checkpoint[2] or '0')}
