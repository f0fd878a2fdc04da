-- Note what the archive has sealed, and trim the log below it, if the caller is the lane's present
-- owner (G5, G7).
--
-- KEYS[1] lane   hash of the lane `@archive`: `epoch` is checked; `entry` and `n` are set to what is
--                sealed, `at` to now (ms); `deaths` goes.
-- KEYS[2] log    stream: entries that are sealed and older than the hot window go, never the last
--                one; the consumer group `@archive` is set to what is sealed.
-- KEYS[3] state  hash: `sealed`, the number up to which the archive has the partition, never
--                lowered; `sealed_entry`, the entry of that number.
--
-- ARGV: epoch, entry and n of the archive's end, how long a sealed entry stays (ms), '1' if the
--       server knows XGROUP SETID … ENTRIESREAD (7.0).
-- Returns how many entries were trimmed, or -1 if the epoch is not the lane's: nothing was written.
local lane, log, state = KEYS[1], KEYS[2], KEYS[3]
local entry, n = ARGV[2], tonumber(ARGV[3])
if redis.call('HGET', lane, 'epoch') ~= ARGV[1] then
  return -1
end
redis.call('HDEL', lane, '') -- so that a full server does not refuse what follows: it frees memory
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if n > tonumber(redis.call('HGET', state, 'sealed') or '0') then
  redis.call('HSET', state, 'sealed', ARGV[3], 'sealed_entry', entry)
end
if redis.call('HGET', lane, 'n') ~= ARGV[3] then
  redis.call('HSET', lane, 'entry', entry, 'n', ARGV[3], 'at', string.format('%d', now))
  redis.call('HDEL', lane, 'deaths')
  if ARGV[5] == '1' then
    redis.pcall('XGROUP', 'SETID', log, '@archive', entry, 'ENTRIESREAD', ARGV[3])
  else
    redis.pcall('XGROUP', 'SETID', log, '@archive', entry)
  end
end

-- The first id that stays: behind what is sealed, or still hot, whichever comes first.
local ms, sequence = string.match(entry, '^(%d+)-(%d+)$')
local hot = now - tonumber(ARGV[4])
local from = string.format('%d-0', hot)
if tonumber(ms) < hot then
  from = ms .. '-' .. string.format('%d', tonumber(sequence) + 1)
end
if hot < 0 then
  return 0
end
if #redis.call('XRANGE', log, from, '+', 'COUNT', 1) == 0 then
  local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
  if not last then
    return 0
  end
  from = last[1]
end
return redis.call('XTRIM', log, 'MINID', '=', from)
