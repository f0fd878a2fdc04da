-- Give up a lease that is still ours.
--
-- KEYS[1] lease  string `epoch:worker`; deleted only if it holds our value.
-- ARGV: the value it must hold.
-- Returns 1 if it was given up.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
