-- Note that a try of an event begins, or is over, on a lane whose owners died: the event may have
-- killed them.
--
-- KEYS[1] lane  hash: `epoch` and `run` are checked; `tries` counts by n, as JSON, the tries that
--               were begun and are not known to be over; it is deleted when the checkpoint
--               advances.
-- ARGV: epoch, n, 1 for a try that begins, -1 for one that is over.
-- Returns the number of tries of the event that are not known to be over, or -1 if the epoch is not
-- the lane's, or if another server, or this one before a restart, gave it.
local was = redis.call('HMGET', KEYS[1], 'epoch', 'tries', 'run')
if was[1] ~= ARGV[1] or restarted(was[3]) then
  return -1
end
redis.call('HDEL', KEYS[1], '')
local tries = was[2] and cjson.decode(was[2]) or {}
local count = math.max(0, (tries[ARGV[2]] or 0) + tonumber(ARGV[3]))
tries[ARGV[2]] = count > 0 and count or nil
if next(tries) then
  redis.call('HSET', KEYS[1], 'tries', cjson.encode(tries))
else
  redis.call('HDEL', KEYS[1], 'tries')
end
return count
