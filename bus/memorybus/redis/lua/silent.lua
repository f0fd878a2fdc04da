-- Stands before the scripts that keep `producers`: not a script by itself.
--
-- A producer has two fields: under its id the last sequence taken from it, as every release reads
-- it, and under `<id>:heard` when that was (ms, this server's clock), with ` rests` behind it once
-- the producer has deleted everything up to there, so that it sends none of it again. One without
-- the second field is an earlier release's, and stays.
-- Who rests is forgotten after a window of ids of silence. It then comes back as a
-- stranger, and loses and doubles nothing. Who does not may be dead, or away, with rows that only its
-- field tells from new ones: it is forgotten after thirty windows. What its spool still holds is then
-- sent once more, marked `r`.
local WINDOWS, LOOK, HEARD = 30, 40, ':heard'

-- Return the last sequence taken from a producer, and whether it is known.
local function last_of(producers, producer)
  local known = redis.call('HGET', producers, producer)
  return tonumber(known or '0'), known
end

-- Note when a producer was heard, and whether it rests: `rests` is '' or ' rests'.
local function note_heard(producers, producer, now, rests)
  redis.call('HSET', producers, producer .. HEARD, string.format('%d', now) .. rests)
end

-- Forget a producer: it comes back as a stranger, if it does.
local function forget(producers, producer)
  redis.call('HDEL', producers, producer, producer .. HEARD)
end

-- Forget silent ones among some producers, where the last look ended; a call's work is bounded.
-- Each newcomer and each who rests looks, at more than the one that it may have added.
local function forget_silent(producers, state, now, window)
  local found = redis.call('HSCAN', producers, redis.call('HGET', state, 'swept') or '0', 'COUNT', LOOK)
  for i = 1, #found[2], 2 do
    local producer = string.match(found[2][i], '^(.*)' .. HEARD .. '$')
    local heard, rests = string.match(found[2][i + 1], '^(%d+)(.*)$')
    local patience = rests == '' and WINDOWS * window or window
    if producer and heard and now - tonumber(heard) > patience then
      forget(producers, producer)
    end
  end
  redis.call('HSET', state, 'swept', found[1])
end

