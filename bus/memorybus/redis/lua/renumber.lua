-- Give the entries that the archive lacks new numbers behind the archive's end, because numbers
-- were given twice (G7), if the caller is the present owner of the lane `@archive` (G5). The entries
-- move to the end of the stream in their order, marked as resent. This is one script, because no
-- other entry may come between them. Numbers that are missing among them stay missing.
--
-- KEYS[1] archiver  hash of the lane `@archive`: `epoch` is checked.
-- KEYS[2] log       stream: every event behind ARGV[2] is added again, at a place behind the
--                   archive's end and with its next number, and deleted; its event's field is `r`
--                   from then on. Entries of others stay where they are.
-- KEYS[3] state     hash: `n` becomes the last number given, and what is sealed the archive's end
--                   (`sealed`, `sealed_entry`, `sealed_run`, `set_back`; see seal). If it is not
--                   that already, `sealed_run` must name another run of the server, or nothing:
--                   this server then came back from an older copy, or is a replica that lacked the
--                   tail. Within one run another Redis, which began as a copy of this one, archives
--                   into the same place, and both would renumber their events for ever.
-- KEYS[4…] lanes    hashes, if they exist: the fields that name events by number are deleted
--                   (`done`, `tries`, `suspects`). The owners know such numbers, too, so they are
--                   refused from now on, by a new `epoch` and by a `run` that no server has: the
--                   next owner then treats all events as sent (see acquire.lua). A lane that is
--                   behind ARGV[2] took entries of repeated numbers for the archive's: it goes back
--                   to before them.
--
-- ARGV: epoch, the log's last entry that the archive has, entry and n of the archive's end ('0-0'
--       and 0 if it has nothing), entry and n of the archive's last event before the repeated
--       numbers.
-- Returns 1; 0 if the epoch is not the lane's, -1 if another Redis archives there. In both of these
-- cases nothing was written.
local log, state = KEYS[2], KEYS[3]
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return 0
end
local counters = redis.call('HMGET', state, 'sealed', 'sealed_entry', 'n', 'set_back', 'sealed_run')
local is_noted = (counters[1] or '0') == ARGV[4] and (counters[2] or '0-0') == ARGV[3]
if not is_noted and counters[5] and not restarted(counters[5]) then
  return -1
end
local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
if not last then
  return 1
end
redis.call('HDEL', state, '') -- so that a full server does not refuse what needs no more room

if is_behind(ARGV[3], last[1]) then
  redis.call('XSETID', log, ARGV[3]) -- this server's clock may be behind
end
if not is_noted then
  local first = counters[4] and string.match(counters[4], '^%d+')
    or string.format('%d', tonumber(ARGV[6]) + 1)
  redis.call('HSET', state, 'sealed', ARGV[4], 'sealed_entry', ARGV[3], 'sealed_run', run_id(),
    'set_back', first .. '-' .. ARGV[4])
end

local sealed = tonumber(ARGV[4])
local n, before, from = sealed, nil, ARGV[2]

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
    end
    from = entry[1]
  end
  if #entries < 500 then
    break
  end
end
if before then
  local lost = math.max(0, step(tonumber(counters[3] or '0'))) -- given last, and gone
  redis.call('HSET', state, 'n', string.format('%d', n + lost))
end
for i = 4, #KEYS do
  local passed = redis.call('HGET', KEYS[i], 'entry')
  if passed and is_behind(passed, ARGV[2]) then
    redis.call('HSET', KEYS[i], 'entry', ARGV[5], 'n', ARGV[6])
  end
  if redis.call('EXISTS', KEYS[i]) == 1 then
    redis.call('HDEL', KEYS[i], 'done', 'tries', 'suspects')
    redis.call('HINCRBY', KEYS[i], 'epoch', 1)
    redis.call('HSET', KEYS[i], 'run', 'renumbered')
  end
end
return 1
