-- Prolong a lease that is still ours; a lost one is never made again (G5).
--
-- KEYS[1] lease  string `epoch:worker`, with a time to live.
-- ARGV: lease (ms), the value it must hold.
-- Returns 1 if it was prolonged, 0 if it is lost.
if redis.call('GET', KEYS[1]) ~= ARGV[2] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
