-- Note that a lane is a new one: nobody has handed anything to its provider yet (G4).
--
-- KEYS[1] lane  hash, unless the lane is there already: `run` the server's run id (see acquire);
--                `epoch` begins at the time (ms), above those of a lane that was here before (G5).
--
-- Returns nothing.
if redis.call('EXISTS', KEYS[1]) == 0 then
  local run = run_id()
  local epoch = string.format('%d', now_ms())
  redis.call('HSET', KEYS[1], 'run', run, 'epoch', epoch)
end
