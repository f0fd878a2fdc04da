-- Write fields of a hash, even if the server is out of memory: a worker that cannot write its
-- heartbeat would count as dead.
--
-- KEYS[1] hash   workers, providers, tools, homes, reports of archivers, or a lane (`halted`).
-- ARGV: field, value, and so on.
-- Returns nothing.
redis.call('HDEL', KEYS[1], '')
redis.call('HSET', KEYS[1], unpack(ARGV))
