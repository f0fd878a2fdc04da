-- Reserve one call of the model and the most tokens that it may use, unless a limit forbids it. All
-- workers share the account. A clock that is set back gives nothing anew: a window that has begun
-- keeps its counts under the earlier name.
--
-- KEYS[1] account  hash: `hour` and `month` (numbers of the windows), and for each of them its calls
--                  and tokens (`hour:calls`, `month:tokens`, …); `spent` (the limit that refused the last
--                  call); what settle_tokens.lua notes.
-- KEYS[2] people   hash: `<person>:calls` and `<person>:tokens` of this month.
--
-- ARGV: person, tokens, then the limits for calls and tokens of an hour, of a month, and of the
--       person's month (0: none).
--
-- Returns {0, hour, month} and counts the call, or {number of the limit that is reached}.
local seconds = tonumber(redis.call('TIME')[1])
local hour = math.floor(seconds / 3600)
-- The number of the calendar month: years of 400-year eras begin in March.
local z = math.floor(seconds / 86400) + 719468
local era = math.floor(z / 146097)
local doe = z - era * 146097
local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524)
  - math.floor(doe / 146096)) / 365)
local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
local month = (era * 400 + yoe) * 12 + math.floor((5 * doy + 2) / 153)

local function open(window, number)
  local was = tonumber(redis.call('HGET', KEYS[1], window) or -1)
  if number > was then
    redis.call('HDEL', KEYS[1], window .. ':calls', window .. ':tokens')
  end
  redis.call('HSET', KEYS[1], window, number)
  return number > was
end
open('hour', hour)
if open('month', month) then
  redis.call('DEL', KEYS[2])
end
redis.call('EXPIRE', KEYS[1], 5356800)

local person, tokens = ARGV[1], tonumber(ARGV[2])
local accounts = {
  {KEYS[1], 'hour:calls', 1}, {KEYS[1], 'hour:tokens', tokens},
  {KEYS[1], 'month:calls', 1}, {KEYS[1], 'month:tokens', tokens},
  {KEYS[2], person .. ':calls', 1}, {KEYS[2], person .. ':tokens', tokens},
}
for i, account in ipairs(accounts) do
  local limit = tonumber(ARGV[i + 2])
  local used = tonumber(redis.call('HGET', account[1], account[2]) or 0)
  if limit > 0 and used + account[3] > limit then
    redis.call('HSET', KEYS[1], 'spent', i)
    return {i}
  end
end
for _, account in ipairs(accounts) do
  redis.call('HINCRBY', account[1], account[2], account[3])
end
redis.call('HDEL', KEYS[1], 'spent')
redis.call('EXPIRE', KEYS[2], 5356800)
return {0, hour, month}
