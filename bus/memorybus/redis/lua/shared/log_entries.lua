-- The entries of a log's stream; `scripts.py` puts this before the scripts that read or compare
-- them.
--
-- An entry of ours has `n`, a number from 1, then `e` or `r` and a body; `memorybus.log.entry`
-- reads the same form. Other programs may have written other entries into the stream.

-- Return the number of an entry of ours; nothing if another program wrote the entry.
local function number_of(fields)
  local ours = #fields == 4 and fields[1] == 'n' and (fields[3] == 'e' or fields[3] == 'r')
  if ours and #fields[2] <= 15 and string.find(fields[2], '^%d+$') and tonumber(fields[2]) > 0 then
    return tonumber(fields[2])
  end
end

-- Return the number of the last entry of ours among the last `count` entries; 0 if none is.
local function last_number(log, count)
  for _, entry in ipairs(redis.call('XREVRANGE', log, '+', '-', 'COUNT', count)) do
    local n = number_of(entry[2])
    if n then
      return n
    end
  end
  return 0
end

-- Say whether one entry's id comes behind another one.
local function is_behind(one, other)
  local ms, sequence = string.match(one, '^(%d+)-(%d+)$')
  local other_ms, other_sequence = string.match(other, '^(%d+)-(%d+)$')
  if ms ~= other_ms then
    return tonumber(ms) > tonumber(other_ms)
  end
  return tonumber(sequence) > tonumber(other_sequence)
end

