-- Note that a lane is new: no event has been handed to its provider yet (G4).
--
-- KEYS[1] lane  hash, written unless the lane exists: `run` is the server's run id (see acquire);
--               `epoch` begins at the time (ms), above those of any earlier lane of this name (G5).
--
-- Returns nothing.
if redis.call('EXISTS', KEYS[1]) == 0 then
  local run = run_id()
  local epoch = string.format('%d', now_ms())
  redis.call('HSET', KEYS[1], 'run', run, 'epoch', epoch)
end
