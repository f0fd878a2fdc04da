-- Take one call from the budget of a provider instance, which all workers share: a bucket that
-- fills with time, and a number of calls per day (UTC).
--
-- KEYS[1] budget  hash: `left` calls in the bucket and `at` when that was so (microseconds); `day`
--                 (since 1970) and the calls `spent` on it. Expires after two days without a call.
--
-- ARGV: calls per second (0: any number; the bucket holds the calls of one second, at least one),
--       calls per day (0: any number).
--
-- Returns 0 if the call may be made, and counts it. Otherwise it writes nothing, and returns in how
-- many milliseconds to ask again, as a negative number if the calls of the day are spent.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local day = math.floor(time[1] / 86400)
local rate, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local was = redis.call('HMGET', KEYS[1], 'left', 'at', 'day', 'spent')
local spent = tonumber(was[3] or -1) == day and tonumber(was[4]) or 0
if most > 0 and spent >= most then
  return -math.ceil((day + 1) * 86400000 - now / 1000)
end
local holds = math.max(1, rate)
local since = math.max(0, now - tonumber(was[2] or 0))
local left = math.min(holds, tonumber(was[1] or holds) + since / 1000000 * rate)
if rate > 0 then
  if left < 1 then
    return math.ceil((1 - left) / rate * 1000)
  end
  left = left - 1
end
redis.call('HSET', KEYS[1], 'left', string.format('%.6f', left), 'at', string.format('%.0f', now),
  'day', day, 'spent', spent + 1)
redis.call('PEXPIRE', KEYS[1], 172800000)
return 0
