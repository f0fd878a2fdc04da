-- Finds out whether the server was restarted or replaced; `scripts.py` puts this before the scripts
-- that use it.
--
-- The run id changes with a restart, and when a replica takes a master's place: the server may then
-- lack the last writes. It is '' if the user may not ask for it; then no change is noticed.
local asked
local function run_id()
  if not asked then
    local info = redis.pcall('INFO', 'server')
    asked = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
  end
  return asked
end

-- Say whether the server was restarted or replaced since it gave a lane to its owner; `run` is the
-- run id that is stored with the lane.
local function restarted(run)
  local now = run and run ~= '' and run_id() or ''
  return now ~= '' and now ~= run
end

