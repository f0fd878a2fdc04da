-- Give up a lease that is still ours.
--
-- KEYS[1] lease  string `epoch:worker`; deleted only if it holds our value.
-- KEYS[2] lane   hash: `owner` is deleted, so that the next owner sees that nobody died, and
--                `tries`, since nothing is called any more; `suspects` stays.
-- ARGV: the value it must hold.
-- Returns nothing.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('HDEL', KEYS[2], 'owner', 'tries')
  redis.call('DEL', KEYS[1])
end
