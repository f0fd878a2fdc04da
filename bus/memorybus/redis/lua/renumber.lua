-- Give the entries that the archive lacks new numbers behind the archive's end, because numbers
-- were given twice (G7). The entries move to the end of the stream in their order, marked as
-- resent. This is one script, because no other entry may come between them. Numbers that are
-- missing among them stay missing.
--
-- KEYS[1] log    stream: every event behind ARGV[1] is added again, at a place behind the archive's
--                end and with its next number, and deleted; its event's field is `r` from then on.
--                Entries of others stay where they are.
-- KEYS[2] state  hash: `n` becomes the last number given; `sealed` must be ARGV[4].
-- KEYS[3…] lanes hashes, if they exist: the fields that name events by number are deleted (`done`,
--                `tries`, `suspects`). The owners know such numbers, too, so they are refused from
--                now on, by a new `epoch` and by a `run` that no server has: the next owner then
--                treats all events as sent (see acquire.lua). A lane that is behind ARGV[1] took
--                entries of repeated numbers for the archive's: it goes back to before them.
--
-- ARGV: the log's last entry that the archive has, entry and n of the archive's end ('0-0' and 0 if
--       it has nothing), what `sealed` is, entry and n of the archive's last event before the
--       repeated numbers.
-- Returns how many events were moved, or -1 if `sealed` is another number: nothing was written.
local log, state = KEYS[1], KEYS[2]
local counters = redis.call('HMGET', state, 'sealed', 'n')
if tonumber(counters[1] or '0') ~= tonumber(ARGV[4]) then
  return -1
end
local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
if not last then
  return 0
end
redis.call('HDEL', state, '') -- so that a full server does not refuse what needs no more room

if is_behind(ARGV[2], last[1]) then
  redis.call('XSETID', log, ARGV[2]) -- this server's clock may be behind
end

local sealed, n, before, moved, from = tonumber(ARGV[3]), tonumber(ARGV[3]), nil, 0, ARGV[1]

-- How many numbers come after `before`, up to `number`; numbers of the archive do not count.
local function step(number)
  local base = before or number - 1
  if number > sealed then
    base = math.max(sealed, before or 0)
  end
  return number - base
end

while true do
  local entries = redis.call('XRANGE', log, '(' .. from, last[1], 'COUNT', 500)
  for _, entry in ipairs(entries) do
    local number = number_of(entry[2])
    if number then
      n = n + math.max(1, step(number))
      before = number
      redis.call('XADD', log, '*', 'n', string.format('%d', n), 'r', entry[2][4])
      redis.call('XDEL', log, entry[1])
      moved = moved + 1
    end
    from = entry[1]
  end
  if #entries < 500 then
    break
  end
end
if before then
  local lost = math.max(0, step(tonumber(counters[2] or '0'))) -- given last, and gone
  redis.call('HSET', state, 'n', string.format('%d', n + lost))
end
for i = 3, #KEYS do
  local passed = redis.call('HGET', KEYS[i], 'entry')
  if passed and is_behind(passed, ARGV[1]) then
    redis.call('HSET', KEYS[i], 'entry', ARGV[5], 'n', ARGV[6])
  end
  if redis.call('EXISTS', KEYS[i]) == 1 then
    redis.call('HDEL', KEYS[i], 'done', 'tries', 'suspects')
    redis.call('HINCRBY', KEYS[i], 'epoch', 1)
    redis.call('HSET', KEYS[i], 'run', 'renumbered')
  end
end
return moved
