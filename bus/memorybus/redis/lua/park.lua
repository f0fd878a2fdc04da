-- Park events: a dead letter and the later events of its key (G6).
--
-- KEYS[1] lane    hash: `epoch` and `run` are checked; `parked` counts the events put aside.
-- KEYS[2] parked  hash: order key -> last entry put aside, and how many of the key's wait; the key
--                 waits while its field exists.
-- KEYS[3] dead    stream: field `r`, a JSON record with the reason and the place in the log; the
--                 event itself stays in the log.
--
-- ARGV: epoch, then for each event: entry, order key, record.
-- Returns 1, or 0 if the epoch is not the lane's, or if another server, or this one before a
-- restart, gave it. An event at or below the key's last entry was put aside before (by an owner
-- that died before its commit): it is skipped.

-- Say whether an entry is behind the last one put aside under its key, as the key's field names it.
local function is_new(entry, said)
  local last = said and string.match(said, '^%d+%-%d+')
  return not last or is_behind(entry, last)
end

-- Return the value of the key's field after one more entry was put aside.
local function place(entry, said)
  if not said then
    return entry .. ' 1'
  end
  local waiting = string.match(said, ' (%d+)$')
  return waiting and entry .. ' ' .. (waiting + 1) or entry -- not ours: settle counts the letters
end

local was = redis.call('HMGET', KEYS[1], 'epoch', 'run')
if was[1] ~= ARGV[1] or restarted(was[2]) then
  return 0
end
redis.call('HDEL', KEYS[1], '')
local count = 0
for i = 2, #ARGV, 3 do
  local entry, key = ARGV[i], ARGV[i + 1]
  local said = redis.call('HGET', KEYS[2], key)
  if is_new(entry, said) then
    redis.call('XADD', KEYS[3], '*', 'r', ARGV[i + 2])
    redis.call('HSET', KEYS[2], key, place(entry, said))
    count = count + 1
  end
end
if count > 0 then
  redis.call('HINCRBY', KEYS[1], 'parked', count)
end
return 1
