-- Give up leases that are still ours.
--
-- KEYS    leases  strings `epoch:worker`; deleted only where they hold our value.
-- ARGV: for each key the value it must hold.
-- Returns how many were given up.
local given = 0
for i, lease in ipairs(KEYS) do
  if redis.call('GET', lease) == ARGV[i] then
    given = given + redis.call('DEL', lease)
  end
end
return given
