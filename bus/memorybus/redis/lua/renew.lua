-- Prolong a lease that is still ours (G5).
--
-- KEYS[1] lease  string `epoch:worker`, with a time to live.
-- KEYS[2] lane   hash: `epoch`, `owner` and `run`. A lease that has gone while they still say that it
--                is ours (the server's clock was set forward) is made again: nobody had it since.
-- ARGV: lease (ms), the value it must hold, epoch, worker.
-- Returns 1 if it was prolonged, 0 if it is lost: another's, or given by a server that is not this
-- one, where nothing of it can be committed. Such a lease runs out by itself: a call may be under way.
local lane = redis.call('HMGET', KEYS[2], 'epoch', 'owner', 'run')
if restarted(lane[3]) then
  return 0
end
local held = redis.call('GET', KEYS[1])
if held == ARGV[2] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
if held or lane[1] ~= ARGV[3] or lane[2] ~= ARGV[4] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
return 1
