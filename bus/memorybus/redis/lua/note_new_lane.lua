-- Note that a lane is a new one: nobody has handed anything to its provider yet (G4).
--
-- KEYS[1] lane  hash, unless the lane is there already: `run` the server's run id (see acquire);
--                `epoch` begins at the time (ms), above those of a lane that was here before (G5).
--
-- Returns nothing.
if redis.call('EXISTS', KEYS[1]) == 0 then
  local run = run_id()
  local time = redis.call('TIME')
  local epoch = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
  redis.call('HSET', KEYS[1], 'run', run, 'epoch', epoch)
end
