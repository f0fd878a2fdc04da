-- Store a provider's result, unless there is a newer request or result.
--
-- KEYS[1] want  hash: `g`, the newest generation asked for; gone after a reset of the session.
-- KEYS[2] warm  hash: `<provider>` result, `g:<provider>` the generation it answers.
-- ARGV: provider, generation, result, time to live (ms).
-- Returns nothing.
local wanted = tonumber(redis.call('HGET', KEYS[1], 'g') or '0')
local generation = tonumber(ARGV[2])
local held = tonumber(redis.call('HGET', KEYS[2], 'g:' .. ARGV[1]) or '0')
if wanted > 0 and generation <= wanted and generation >= held then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3], 'g:' .. ARGV[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
