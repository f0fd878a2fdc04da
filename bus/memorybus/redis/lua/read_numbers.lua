-- Read the numbers of a page of one partition, to find missing ones; this changes nothing.
--
-- KEYS[1] log  stream: entries with their field `n`.
--
-- ARGV: the id after which to begin, the number there, how many entries to read.
--
-- Returns {id, n, read, foreign, breaks}: where the page ends, the number there, how many entries
-- it had, how many of them are not ours, and for each place where two neighbouring numbers are not
-- consecutive, these two numbers.
local entries = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[3])
local n, foreign, breaks = tonumber(ARGV[2]), 0, {}
for _, entry in ipairs(entries) do
  local found = number_of(entry[2])
  if not found then
    foreign = foreign + 1
  else
    if found ~= n + 1 then
      breaks[#breaks + 1] = n
      breaks[#breaks + 1] = found
    end
    n = found
  end
end
local last = entries[#entries]
return {last and last[1] or ARGV[1], n, #entries, foreign, breaks}
