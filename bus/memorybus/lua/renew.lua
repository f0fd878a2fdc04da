-- Prolong leases that are still ours; a lost one is never made again (G5).
--
-- KEYS    leases  strings `epoch:worker`.
-- ARGV: lease (ms), then for each key the value it must hold.
-- Returns for each key 1 if it was prolonged, 0 if it is lost.
local kept = {}
for i, lease in ipairs(KEYS) do
  if redis.call('GET', lease) == ARGV[i + 1] then
    kept[i] = redis.call('PEXPIRE', lease, ARGV[1])
  else
    kept[i] = 0
  end
end
return kept
