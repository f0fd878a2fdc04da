-- Give up a lease that is still ours, in good order.
--
-- KEYS[1] lease  string `epoch:worker`; deleted only if it holds our value.
-- KEYS[2] lane   hash: `owner` goes, so that the next one sees that nobody died, and `tries`, since
--                no event ended this one.
-- ARGV: the value it must hold.
-- Returns 1 if it was given up.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('HDEL', KEYS[2], 'owner', 'tries')
return redis.call('DEL', KEYS[1])
