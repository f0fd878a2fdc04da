-- Note that a producer has deleted every event up to a sequence: none of them is ever sent again.
--
-- KEYS[1] producers  hash: the last sequence taken from each producer, and when (see append);
--                    ` rests` is written behind that, unless the sequence is another one. Some
--                    producers that were silent for too long are forgotten (G10).
-- KEYS[2] state      hash: `swept` where the next search for silent producers begins.
--
-- ARGV: producer, sequence, milliseconds after which an idle producer may be forgotten.
--
-- Returns nothing.
local last = last_of(KEYS[1], ARGV[1])
local now = now_ms()
if last == tonumber(ARGV[2]) then
  note_heard(KEYS[1], ARGV[1], now, ' rests')
end
forget_silent(KEYS[1], KEYS[2], now, tonumber(ARGV[3]))
