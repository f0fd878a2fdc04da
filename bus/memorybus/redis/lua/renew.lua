-- Prolong the leases of some lanes that are still their owner's (G5).
--
-- KEYS: of each lane two, all in one slot:
--   lease  string `epoch:worker`, with a time to live.
--   lane   hash: `epoch`, `owner` and `run`. If a lease has expired while these still name its
--          owner (the server's clock was set forward), it is made again: nobody else had it
--          meanwhile.
-- ARGV: of each lane three: how long the lease lasts (ms), epoch, worker.
-- Returns for each lane 1 if its lease was prolonged, and 0 if it is lost: it is another worker's,
-- or another server gave it, or this one before a restart, so that nothing can be committed under
-- it. Such a lease is left to expire, because a call may be under way. An error concerns its own
-- lane only.
local function renewed(lease, lane, ms, epoch, worker)
  local known = redis.pcall('HMGET', lane, 'epoch', 'owner', 'run')
  if known.err then
    return known
  end
  if restarted(known[3]) then
    return 0
  end
  local mine = epoch .. ':' .. worker
  local held = redis.pcall('GET', lease)
  if held == mine then
    return redis.pcall('PEXPIRE', lease, ms)
  end
  if type(held) == 'table' then
    return held
  end
  if held or known[1] ~= epoch or known[2] ~= worker then
    return 0
  end
  local made = redis.pcall('SET', lease, mine, 'PX', ms)
  return made.err and made or 1
end

local renewals = {}
for i = 1, #KEYS / 2 do
  local lease, lane = KEYS[2 * i - 1], KEYS[2 * i]
  renewals[i] = renewed(lease, lane, ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i])
end
return renewals
