-- Whether the server was restarted or replaced: `scripts.py` puts this before the scripts that ask.
--
-- The run id changes with a restart, and when a replica takes a master's place: the server may then
-- lack what was done last. It is '' if the user may not ask for it; then no change is noticed.
local asked
local function run_id()
  if not asked then
    local info = redis.pcall('INFO', 'server')
    asked = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
  end
  return asked
end

-- Return whether the server was restarted or replaced since it gave a lane out, with whose `run` id.
local function restarted(run)
  local now = run and run ~= '' and run_id() or ''
  return now ~= '' and now ~= run
end

