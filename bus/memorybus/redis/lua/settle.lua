-- Settle or amend one dead letter, if the caller is the lane's present owner (G5, G6).
--
-- KEYS[1] lane     hash: `epoch` and `run` are checked; `parked` and `discarded` count events.
-- KEYS[2] parked   hash: order key -> last entry put aside, and how many wait; the key is freed
--                  with its last letter. If another program wrote a value there, the key's letters
--                  are counted, so that it neither waits forever nor is freed too early.
-- KEYS[3] dead     stream: the letter is removed, unless it is amended.
-- KEYS[4] amended  hash: entry -> JSON, the changes of a letter since it was put aside.
-- KEYS[5] log      stream: takes the record of what an operator decided.
-- KEYS[6] state    hash: `n`, the log's last dense number; `sealed`, which is never given again.
--
-- ARGV: epoch, the letter's id in `dead`, its entry in the log, its order key, its amendment
--       (empty: it is settled and removed), an event to append to the log (empty: none; a letter
--       that is removed with an event counts as discarded).
-- Returns 0 if the epoch is not the lane's, or if another server, or this one before a restart,
-- gave it; 1 if the letter was gone (nothing is written in both cases); 2 if it is done; 3 if the
-- key is freed. A record that is not ours was never counted: it is removed, and frees no key.
local lane, parked, dead, amended = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, entry, key, amendment, event = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

-- Return the entry of a letter that waits under the key, else nothing: others may have written
-- anything into the stream.
local function entry_of(letter)
  local fields = letter[2]
  local known, record = pcall(cjson.decode, fields[2])
  local ours = fields[1] == 'r' and known and type(record) == 'table' and record.key == key
  return ours and type(record.entry) == 'string' and record.entry
end

-- Return the last entry put aside under the key, and how many wait.
local function waiting()
  local said = redis.call('HGET', parked, key)
  local last, count = string.match(said or '', '^(%d+%-%d+) (%d+)$')
  if last then
    return last, tonumber(count)
  end
  last, count = entry, 0
  for _, letter in ipairs(redis.call('XRANGE', dead, '-', '+')) do
    local found = entry_of(letter)
    if found then
      last, count = found, count + 1
    end
  end
  return last, count
end

local was = redis.call('HMGET', lane, 'epoch', 'run')
if was[1] ~= ARGV[1] or restarted(was[2]) then
  return 0
end
local letter = redis.call('XRANGE', dead, id, id)[1]
if not letter then
  return 1
end
-- Everything that may fail comes before the first write, because Redis does not undo a failed
-- script.
local ours = key ~= 'stray:' .. id or entry_of(letter)
local last, left
if amendment == '' and ours then
  last, left = waiting()
end
redis.call('HDEL', lane, '') -- so that a full server does not refuse what follows
if event ~= '' then
  local known = redis.call('HMGET', KEYS[6], 'n', 'sealed')
  local highest = math.max(tonumber(known[1] or '0'), tonumber(known[2] or '0'))
  local n = string.format('%d', highest + 1)
  redis.call('HSET', KEYS[6], 'n', n)
  redis.call('XADD', KEYS[5], '*', 'n', n, 'e', event)
end
if amendment ~= '' then
  redis.call('HSET', amended, entry, amendment)
  return 2
end

redis.call('XDEL', dead, id)
redis.call('HDEL', amended, entry)
if not ours then
  return 2
end
redis.call('HINCRBY', lane, 'parked', -1)
if event ~= '' then
  redis.call('HINCRBY', lane, 'discarded', 1)
end
if left > 1 then
  redis.call('HSET', parked, key, last .. ' ' .. string.format('%d', left - 1))
  return 2
end
redis.call('HDEL', parked, key)
return 3
