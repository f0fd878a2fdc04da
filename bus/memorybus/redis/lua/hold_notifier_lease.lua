-- Let one process at a time notify people of findings: take, renew or give up this task, and read
-- or replace the note about what was reported.
--
-- KEYS[1] notices  hash: `owner`, `until` (ms of this server's clock; the task is free afterwards),
--                  `note`. Expires after a week without an owner.
-- ARGV: the process that asks, how long the task is its own from now on (ms; 0 gives it up), the
--       new note or ''. Only the owner can write a note: a process that was replaced, even for a
--       moment, does not overwrite what was reported since.
--
-- Returns the note ('' if there is none); nothing if another process has the task.
local now = now_ms()
local was = redis.call('HMGET', KEYS[1], 'owner', 'until', 'note')
local others = was[1] and was[1] ~= ARGV[1]
if others and (tonumber(was[2]) > now or ARGV[3] ~= '' or ARGV[2] == '0') then
  return false
end
local note = ARGV[3] ~= '' and ARGV[3] or was[3] or ''
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'until', string.format('%.0f', now + ARGV[2]),
  'note', note)
redis.call('PEXPIRE', KEYS[1], 604800000)
return note
