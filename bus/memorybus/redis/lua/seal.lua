-- Note what the archive has sealed, and trim the log below it, if the caller is the lane's present
-- owner (G5, G7).
--
-- KEYS[1] lane   hash of the lane `@archive`: `epoch` is checked; `entry` and `n` are set to what
--                is sealed, `at` to now (ms); `deaths` is deleted.
-- KEYS[2] log    stream: entries that are sealed and older than the hot window are removed, but
--                never the last one; the consumer group `@archive` is set to what is sealed. New
--                entries get ids behind what is sealed, even if the server's clock is behind that.
-- KEYS[3] state  hash: `sealed`, the number up to which the archive has the partition, never
--                lowered; `sealed_entry`, the entry of that number; `sealed_run`, the server's run
--                id at that time; `n`, the last number given; `set_back`, written if the archive has later ones: this Redis then is older than
--                its archive. It names the first and the last of the numbers that it never gave.
--
-- ARGV: epoch, entry and n of the archive's end, how long a sealed entry stays (ms), and the log's
--       last entry up to the archive's end that the caller knows to be in the archive, together
--       with all before it.
-- Returns 1; 0 if the epoch is not the lane's, -1 if the log has an entry up to the archive's end
-- that the caller does not know. In both of these cases nothing was written.
local lane, log, state = KEYS[1], KEYS[2], KEYS[3]
local entry, n = ARGV[2], tonumber(ARGV[3])
if redis.call('HGET', lane, 'epoch') ~= ARGV[1] then
  return 0
end

local known = redis.call('XREVRANGE', log, entry, '-', 'COUNT', 1)[1]
if known and is_behind(known[1], ARGV[5]) then
  return -1
end
redis.call('HDEL', lane, '') -- so that a full server does not refuse what follows: it frees memory
local now = now_ms()
local was = redis.call('HMGET', state, 'sealed', 'sealed_entry', 'n', 'set_back', 'sealed_run')
if was[5] ~= run_id() then
  redis.call('HSET', state, 'sealed_run', run_id())
end
local sealed, given = tonumber(was[1] or '0'), tonumber(was[3] or '0')
if n > sealed or (n == sealed and was[2] ~= entry) then
  redis.call('HSET', state, 'sealed', ARGV[3], 'sealed_entry', entry)
  if n > given then
    local first = was[4] and string.match(was[4], '^%d+') or string.format('%d', given + 1)
    redis.call('HSET', state, 'set_back', first .. '-' .. ARGV[3])
  end
end
if redis.call('HGET', lane, 'n') ~= ARGV[3] then
  redis.call('HSET', lane, 'entry', entry, 'n', ARGV[3], 'at', string.format('%d', now))
  redis.call('HDEL', lane, 'deaths')
  if redis.REDIS_VERSION_NUM then -- since 7.0, as is ENTRIESREAD
    redis.pcall('XGROUP', 'SETID', log, '@archive', entry, 'ENTRIESREAD', ARGV[3])
  else
    redis.pcall('XGROUP', 'SETID', log, '@archive', entry)
  end
end

local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
if not last or is_behind(entry, last[1]) then
  local said = redis.call('EXISTS', log) == 1 and redis.call('XINFO', 'STREAM', log) or {}
  for i = 1, #said, 2 do
    if said[i] == 'last-generated-id' and is_behind(entry, said[i + 1]) then
      redis.call('XSETID', log, entry)
    end
  end
end

-- The first id that stays is the first one that is not sealed or is still hot.
local ms, sequence = string.match(entry, '^(%d+)-(%d+)$')
local hot = now - tonumber(ARGV[4])
local from = string.format('%d-0', hot)
if tonumber(ms) < hot then
  from = ms .. '-' .. string.format('%d', tonumber(sequence) + 1)
end
if hot >= 0 and last then
  if #redis.call('XRANGE', log, from, '+', 'COUNT', 1) == 0 then
    from = last[1]
  end
  redis.call('XTRIM', log, 'MINID', '=', from)
end
return 1
