-- Free the lane of a worker whose process is known to have ended, before its lease expires (G5).
--
-- KEYS[1] lease  string `epoch:worker`; deleted only if it is that worker's.
-- KEYS[2] lane   hash: not changed unless `owner` is that worker. `owner` is deleted, so that no
--                worker waits for the lease's end by its own clock, and the death is noted, as
--                the next owner would do otherwise (see shared/lane_death.lua).
-- ARGV: worker.
-- Returns 1 if the lane was that worker's.
local held = redis.call('GET', KEYS[1])
if held and string.match(held, ':(.*)$') ~= ARGV[1]
    or redis.call('HGET', KEYS[2], 'owner') ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('HDEL', KEYS[2], 'owner')
note_death(KEYS[2])
return 1
