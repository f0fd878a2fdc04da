-- The time of this server's clock, in milliseconds since the Unix epoch: `scripts.py` puts this
-- before the scripts that ask for it.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

