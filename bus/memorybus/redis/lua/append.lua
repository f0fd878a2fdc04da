-- Append a batch of one producer to one partition, each event once (G2).
--
-- KEYS[1] log        stream: one entry per event, fields `n` (dense number) and `e` (envelope);
--                    `e` is named `r` if the log may have had the event before and lost it.
-- KEYS[2] state      hash: `n` last dense number (the log's last entry has it if the field was
--                    deleted), `sealed` number up to which the archive has the partition (never
--                    given again, even if Redis lost its tail below it), `since`
--                    when the window of ids began (ms), `swept` where the next search for silent
--                    producers begins, `duplicates` and `conflicts` counted so far, `run` the
--                    server's run id when the first event came (see acquire).
-- KEYS[3] producers  hash: last sequence taken from each producer, and when. A sequence at or below
--                    it is a resend whose acknowledgement was lost: it is skipped. With a new
--                    producer's first batch some others are checked: one that rests (see
--                    note_idle_producer) is forgotten after `dedupe_window` of silence, any
--                    other after thirty times that (see shared/known_producers). A forgotten
--                    producer that comes back sends what its spool holds: if it rested, the log
--                    never had that; otherwise the log may have had it (`r`).
-- KEYS[4] seen:new   hash: event ids of the current window -> payload digest. An id found here or
-- KEYS[5] seen:old   in the window before is a duplicate: skipped and counted; with another
--                    digest it is a conflict: skipped, counted and reported to the caller.
--
-- ARGV: producer, last sequence the producer knows to be here, window (ms), ids per window,
--       last sequence that may have been here before, then for each event: sequence, id, digest,
--       body.
--
-- Returns {0, last} and writes nothing if Redis has less than it had acknowledged (it lost its
-- tail: the producer reads its spool again from `last`). Otherwise {1, indexes of conflicts}.
local log, state, producers, new, old = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local last, known = last_of(producers, ARGV[1])
if last < tonumber(ARGV[2]) then
  return {0, last}
end

local now = now_ms()
local counters = redis.call('HMGET', state, 'n', 'since', 'sealed')
local n, since = tonumber(counters[1] or '0'), tonumber(counters[2] or '0')
n = math.max(n, tonumber(counters[3] or '0'), last_number(log, counters[1] and 1 or 1000))
local born = n == 0
if now - since > tonumber(ARGV[3]) or redis.call('HLEN', new) >= tonumber(ARGV[4]) then
  redis.call('HSET', state, 'since', string.format('%d', now))
  redis.call('UNLINK', old)
  if redis.call('EXISTS', new) == 1 then
    redis.call('RENAME', new, old)
  end
end

local conflicts, fresh = {}, {}
local duplicates, maybe_delivered_upto = 0, tonumber(ARGV[5])
for i = 6, #ARGV, 4 do
  local sequence, id, digest = tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2]
  if sequence > last then
    local before = fresh[id] or redis.call('HGET', new, id) or redis.call('HGET', old, id)
    if before then
      duplicates = duplicates + 1
      if before ~= digest then
        conflicts[#conflicts + 1] = (i - 6) / 4
      end
    else
      n = n + 1
      local name = sequence > maybe_delivered_upto and 'e' or 'r'
      redis.call('XADD', log, '*', 'n', string.format('%d', n), name, ARGV[i + 3])
      redis.call('HSET', new, id, digest)
      fresh[id] = digest
    end
    last = sequence
  end
end

if born then
  redis.call('HSET', state, 'run', run_id())
end
redis.call('HSET', state, 'n', string.format('%d', n))
redis.call('HSET', producers, ARGV[1], string.format('%d', last))
note_heard(producers, ARGV[1], now, '')
if not known then
  forget_silent(producers, state, now, 2 * ARGV[3])
end
if duplicates > 0 then
  redis.call('HINCRBY', state, 'duplicates', duplicates)
end
if #conflicts > 0 then
  redis.call('HINCRBY', state, 'conflicts', #conflicts)
end
return {1, conflicts}
