-- Take a free lane: a lease that expires, and an epoch that only grows (G5).
--
-- KEYS[1] lease  string `epoch:worker`, with a time to live; the lane is taken while it exists.
-- KEYS[2] lane   hash: `epoch` is raised; `entry` and `n` are the checkpoint, `done` the later
--                events that are done already, `sent` the highest n that may have been handed to
--                the provider; `owner` stays until the owner gives the lane up; `deaths` counts
--                the owners in a row that did not give it up, and did not advance; `tries` and
--                `suspects` are the events of which they may have died (see
--                shared/lane_death.lua); `run` is the server's run id, which shows a restart;
--                `halted`, the reason why the last owner stopped, is deleted.
-- KEYS[3] log    stream: gets a consumer group of the provider's name, so that ordinary tools see
--                the lane's progress; the group is a mirror, nothing is ever read through it.
-- KEYS[4] state  hash: `n`, the partition's last dense number; `sealed`, the archive's last one;
--                `run`, the server's run id when the partition was created.
--
-- ARGV: worker, lease (ms), provider, floor: an epoch that is known to have been given (if Redis
--       lost its count, the new epoch must still be above it), held: the value of a lease that the
--       worker gave up and still holds, or ''; the worker may take that lane again.
-- Returns nil if the lane is taken, else {epoch, entry, n, done, suspects, sent, deaths, head};
-- '0-0' and 0 at the beginning; `head` is the partition's last dense number. After a restart, or on
-- a replica that took over, the last changes of lanes may be lost, or whole lanes. So everything in
-- the log then counts as sent (for a missing lane, unless the log was created in the present run of
-- this server), and the epoch begins at the time (ms), which is above all epochs that may have been
-- lost.
if redis.call('EXISTS', KEYS[1]) == 1 then
  if ARGV[5] == '' or redis.call('GET', KEYS[1]) ~= ARGV[5] then
    return false
  end
end
redis.call('HDEL', KEYS[2], '', 'halted') -- so that a full server does not refuse what follows
local was = redis.call('HMGET', KEYS[2], 'entry', 'n', 'done', 'sent', 'owner', 'run')
local log = redis.call('HMGET', KEYS[4], 'n', 'run', 'sealed')
local sent, head = tonumber(was[4] or '0'), tonumber(log[1] or '0')
head = math.max(head, tonumber(log[3] or '0')) -- the archive may have what the log lost
local run = run_id()
local epoch = redis.call('HINCRBY', KEYS[2], 'epoch', 1)
if was[6] ~= run then -- a new lane, or the server was restarted and may have lost its last epochs
  epoch = math.max(epoch, now_ms())
  -- A missing lane is certainly new only if the log was created in the present run of this server.
  if was[6] or run == '' or log[2] ~= run then
    sent = math.max(sent, head, 1) -- above 0: a former owner may have sent something
    redis.call('HSET', KEYS[2], 'sent', string.format('%d', sent))
  end
  redis.call('HDEL', KEYS[2], 'tries', 'suspects') -- their numbers may be other events' now
end
if epoch <= tonumber(ARGV[4]) then
  epoch = tonumber(ARGV[4]) + 1
end
-- The previous owner died if the lane still names it and the server has not restarted since.
-- Otherwise it gave the lane up, or takes it again after losing it, or the server lost all lanes.
local died = was[5] and was[5] ~= ARGV[1] and was[6] == run
local deaths = died and note_death(KEYS[2])
  or tonumber(redis.call('HGET', KEYS[2], 'deaths') or '0')
redis.call('HDEL', KEYS[2], 'tries')
redis.call('HSET', KEYS[2], 'epoch', string.format('%d', epoch), 'owner', ARGV[1], 'run', run)
redis.call('SET', KEYS[1], string.format('%d', epoch) .. ':' .. ARGV[1], 'PX', ARGV[2])
redis.pcall('XGROUP', 'CREATE', KEYS[3], ARGV[3], '0', 'MKSTREAM')
local suspects = redis.call('HGET', KEYS[2], 'suspects') or ''
return {epoch, was[1] or '0-0', tonumber(was[2] or '0'), was[3] or '', suspects, sent, deaths, head}
