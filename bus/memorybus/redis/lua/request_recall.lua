-- Ask for a recall: the newest request of a session wins.
--
-- KEYS[1] want  hash: `g` generation, `r` the request (JSON).
-- ARGV: request, time to live (ms).
-- Returns the generation.
local generation = redis.call('HINCRBY', KEYS[1], 'g', 1)
redis.call('HSET', KEYS[1], 'r', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return generation
