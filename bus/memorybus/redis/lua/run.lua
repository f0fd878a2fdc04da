-- Stands before the scripts that ask which server this is: not a script by itself.
--
-- A server's run id tells it from the one before a restart, and from the master whose place it took;
-- it may lack what that one did last. It is '' where a user is not permitted to ask: nothing is
-- noticed then.
local function run_id()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
end

-- Say whether this is another server than the one that gave a lane, whose `run` that is.
local function restarted(run)
  local now = run and run ~= '' and run_id() or ''
  return now ~= '' and now ~= run
end

