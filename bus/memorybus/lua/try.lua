-- Note that an event is about to be tried, on a lane whose owners died: it may be what kills them.
--
-- KEYS[1] lane  hash: `epoch` is checked; `tries` counts by n, as JSON, how often events were begun;
--               it goes when the checkpoint advances.
-- ARGV: epoch, n.
-- Returns the number of this try, or -1 if the epoch is not the lane's.
local was = redis.call('HMGET', KEYS[1], 'epoch', 'tries')
if was[1] ~= ARGV[1] then
  return -1
end
redis.call('HDEL', KEYS[1], '')
local tries = was[2] and cjson.decode(was[2]) or {}
tries[ARGV[2]] = (tries[ARGV[2]] or 0) + 1
redis.call('HSET', KEYS[1], 'tries', cjson.encode(tries))
return tries[ARGV[2]]
