-- Settle or amend one dead letter, if the caller is the lane's present owner (G5, G6).
--
-- KEYS[1] lane     hash: `epoch` is checked; `parked` and `discarded` count events.
-- KEYS[2] parked   hash: order key -> last entry put aside, and how many wait; the key is freed
--                  with its last letter.
-- KEYS[3] dead     stream: the letter goes, unless it is amended.
-- KEYS[4] amended  hash: entry -> JSON, what became of a letter since it was put aside.
-- KEYS[5] log      stream: takes the record of what an operator decided.
-- KEYS[6] state    hash: `n`, the log's last dense number; `sealed`, which is never given again.
--
-- ARGV: epoch, the letter's id in `dead`, its entry in the log, its order key, what became of it
--       (empty: it is settled and goes), an event to append to the log (empty: none; with a letter
--       that goes: it is discarded).
-- Returns -1 if the epoch is not the lane's, 0 if the letter was gone (nothing is written then),
-- 1 if it is done, 2 if the key is freed.
local lane, parked, dead, amended = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, entry, key, amendment, event = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

-- An older release kept no number of what waits.
local function counted()
  local count = 0
  for _, letter in ipairs(redis.call('XRANGE', dead, '-', '+')) do
    if cjson.decode(letter[2][2]).key == key then
      count = count + 1
    end
  end
  return count
end

if redis.call('HGET', lane, 'epoch') ~= ARGV[1] then
  return -1
end
if #redis.call('XRANGE', dead, id, id) == 0 then
  return 0
end
redis.call('HDEL', lane, '') -- so that a full server does not refuse what follows
if event ~= '' then
  local known = redis.call('HMGET', KEYS[6], 'n', 'sealed')
  local last = math.max(tonumber(known[1] or '0'), tonumber(known[2] or '0'))
  local n = string.format('%d', last + 1)
  redis.call('HSET', KEYS[6], 'n', n)
  redis.call('XADD', KEYS[5], '*', 'n', n, 'e', event)
end
if amendment ~= '' then
  redis.call('HSET', amended, entry, amendment)
  return 1
end

local last, waiting = string.match(redis.call('HGET', parked, key) or '', '^(%S+) ?(%d*)$')
local left = (tonumber(waiting) or counted()) - 1
redis.call('XDEL', dead, id)
redis.call('HDEL', amended, entry)
redis.call('HINCRBY', lane, 'parked', -1)
if event ~= '' then
  redis.call('HINCRBY', lane, 'discarded', 1)
end
if left > 0 and last then
  redis.call('HSET', parked, key, last .. ' ' .. string.format('%d', left))
  return 1
end
redis.call('HDEL', parked, key)
return 2
