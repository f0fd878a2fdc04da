-- Settle a call of the model: correct the tokens that reserve_tokens.lua counted, in the windows that
-- still last, and note how the call went.
--
-- KEYS[1] account, KEYS[2] people  see reserve_tokens.lua; this script also counts `unreadable`
--                  answers, and keeps `why` the model fails and since when (`failing`, ms).
--
-- ARGV: person, hour, month, tokens to add (negative to give back), whether the answer could not be
--       read (0 or 1), and why the call failed ("" if the model answered).
local time = redis.call('TIME')
local person, hour, month, more = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local function add(key, field)
  local used = tonumber(redis.call('HGET', key, field) or 0)
  redis.call('HSET', key, field, math.max(0, used + more))
end
if redis.call('HGET', KEYS[1], 'hour') == hour then
  add(KEYS[1], 'hour:tokens')
end
if redis.call('HGET', KEYS[1], 'month') == month then
  add(KEYS[1], 'month:tokens')
  add(KEYS[2], person .. ':tokens')
end
redis.call('HINCRBY', KEYS[1], 'unreadable', tonumber(ARGV[5]))
if ARGV[6] == '' then
  redis.call('HDEL', KEYS[1], 'failing', 'why')
else
  redis.call('HSETNX', KEYS[1], 'failing', time[1] * 1000 + math.floor(time[2] / 1000))
  redis.call('HSET', KEYS[1], 'why', ARGV[6])
end
redis.call('EXPIRE', KEYS[1], 5356800)
redis.call('EXPIRE', KEYS[2], 5356800)
return 0
