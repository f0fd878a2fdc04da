-- Note that a lane is a new one: nobody has handed anything to its provider yet (G4).
--
-- KEYS[1] lane  hash: `run` the server's run id, unless the lane is there already (see acquire).
--
-- Returns nothing.
if redis.call('EXISTS', KEYS[1]) == 0 then
  local info = redis.pcall('INFO', 'server')
  local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
  redis.call('HSET', KEYS[1], 'run', run)
end
