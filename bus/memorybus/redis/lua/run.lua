-- Is put before the scripts that ask which server this is; it is no script by itself.
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

-- Say whether this is another server than the one that gave a lane, whose `run` that is.
local function restarted(run)
  local now = run and run ~= '' and run_id() or ''
  return now ~= '' and now ~= run
end

