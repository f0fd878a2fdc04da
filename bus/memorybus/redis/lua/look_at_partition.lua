-- Read the state of one partition at one moment; this changes nothing.
--
-- KEYS[1] log    stream: its length, its ends, and the numbers at some places in it.
-- KEYS[2] state  hash: `n` last dense number, `sealed` number up to which it may be trimmed,
--                `sealed_entry`, the entry of that number, and `set_back` (see seal).
--
-- ARGV: the id of an entry that was in the log before ("" for none), how many nodes to sample for
--       the size, then ages (ms) for each of which an entry is returned.
--
-- Entries of another form than ours were written by others and are skipped, a thousand at most.
-- Returns {length, n, sealed, bytes, first, last, before, after, now (ms), {entry at each age},
-- sealed entry, unsealed, set back}. An entry is {id, n}, or an empty table if there is
-- none. first, last: our entries at the ends; before: the last one up to the given id; after: the
-- first one behind it; entry at an age: the first one that is not older; unsealed: the first one
-- behind the sealed entry.
local log, state = KEYS[1], KEYS[2]

local function nearest(command, from, to)
  local count = 1 -- as a rule it is the first one
  for _ = 0, 10 do
    local entries = redis.call(command, log, from, to, 'COUNT', count)
    for _, entry in ipairs(entries) do
      local n = number_of(entry[2])
      if n then
        return {entry[1], n}
      end
    end
    if #entries < count then
      return {}
    end
    from, count = '(' .. entries[#entries][1], 100
  end
  return {}
end

local function usage(key)
  local size = redis.pcall('MEMORY', 'USAGE', key, 'SAMPLES', ARGV[2])
  return type(size) == 'number' and size or 0  -- managed servers may forbid it
end

local now = now_ms()
local ages = {}
for i = 3, #ARGV do
  local from = string.format('%d', math.max(0, now - tonumber(ARGV[i])))
  ages[#ages + 1] = nearest('XRANGE', from, '+')
end
local before, after = {}, {}
if ARGV[1] ~= '' then
  before = nearest('XREVRANGE', ARGV[1], '-')
  after = nearest('XRANGE', '(' .. ARGV[1], '+')
end
local sealed_entry = redis.call('HGET', state, 'sealed_entry') or ''
return {
  redis.call('XLEN', log),
  redis.call('HGET', state, 'n') or '',
  redis.call('HGET', state, 'sealed') or '',
  usage(log),
  nearest('XRANGE', '-', '+'),
  nearest('XREVRANGE', '+', '-'),
  before,
  after,
  string.format('%d', now),
  ages,
  sealed_entry,
  nearest('XRANGE', sealed_entry == '' and '-' or '(' .. sealed_entry, '+'),
  redis.call('HGET', state, 'set_back') or '',
}
