-- What the log remembers of its producers; `scripts.py` puts this before the scripts that write it.
--
-- A producer has two fields. Under its id: the last sequence taken from it. Under `<id>:heard`:
-- when that was (ms, this server's clock), followed by ` rests` once the producer has deleted
-- everything up to there, so that it sends none of it again. A producer without the second field
-- stays. A producer that rests is forgotten after `dedupe_window` of silence (two windows of event
-- ids): if it comes back, nothing is lost or doubled. One that does not rest may be dead or away,
-- and its spool may have rows that only this field distinguishes from new ones: so it is forgotten
-- after thirty times that. If it comes back, the rows of its spool are sent again, marked `r`.
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

-- Forget a producer; if it comes back, it is new.
local function forget(producers, producer)
  redis.call('HDEL', producers, producer, producer .. HEARD)
end

-- Forget the silent ones among some producers, beginning where the last call ended. The work is
-- bounded. It runs for each new and for each idle producer, and checks more than were added.
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

