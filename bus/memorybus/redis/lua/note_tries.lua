-- Note what a lane's provider is called for next, on a lane whose owners died: if the owner dies of
-- it, the next one knows where to look (see shared/lane_death.lua).
--
-- KEYS[1] lane  hash: `epoch` and `run` are checked; `tries` is what is being called, and `suspects`
--               what was being called when an owner died. Both are JSON: by n the deaths at which
--               an event was being called, in `tries` counting the one that may follow.
-- ARGV: epoch, tries, suspects; '' for none.
-- Returns 1, or 0 if the epoch is not the lane's, or if another server, or this one before a
-- restart, gave it: nothing is written then.
local was = redis.call('HMGET', KEYS[1], 'epoch', 'run')
if was[1] ~= ARGV[1] or restarted(was[2]) then
  return 0
end
redis.call('HDEL', KEYS[1], '') -- so that a full server does not refuse what follows
for i, field in ipairs({'tries', 'suspects'}) do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[1], field)
  else
    redis.call('HSET', KEYS[1], field, ARGV[i + 1])
  end
end
return 1
