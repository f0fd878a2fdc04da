-- Stands before the scripts that keep `producers`: not a script by itself.
--
-- A producer's field is `<last> <heard>`: the last sequence taken from it, and when (ms, this
-- server's clock); behind that ` rests` once it has deleted everything up to there, so that it sends
-- none of it again. Who rests is forgotten after a window of ids of silence. It then comes back as a
-- stranger, and loses and doubles nothing. Who does not may be dead, or away, with rows that only its
-- field tells from new ones: it is forgotten after thirty windows. What its spool still holds is then
-- sent once more, marked `r`.
local WINDOWS, LOOK = 30, 20

-- Return the last sequence taken from a producer, and whether it is known.
local function last_of(producers, producer)
  local known = redis.call('HGET', producers, producer)
  return known and tonumber(string.match(known, '^%d+')) or 0, known
end

-- Forget silent ones among some producers, where the last look ended; a call's work is bounded.
-- Each newcomer and each who rests looks, at more than the one that it may have added.
local function forget_silent(producers, state, now, window)
  local found = redis.call('HSCAN', producers, redis.call('HGET', state, 'swept') or '0', 'COUNT', LOOK)
  for i = 1, #found[2], 2 do
    local heard, rests = string.match(found[2][i + 1], '^%d+ (%d+)(.*)$')
    local patience = rests == '' and WINDOWS * window or window
    if heard and now - tonumber(heard) > patience then
      redis.call('HDEL', producers, found[2][i])
    end
  end
  redis.call('HSET', state, 'swept', found[1])
end

