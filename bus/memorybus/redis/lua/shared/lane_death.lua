-- The death of a lane's owner; `scripts.py` puts this before the scripts that find one.

-- Count it in `deaths`, and return how many there are. The events that the owner noted before it
-- called its provider (`tries`) are the lane's `suspects` from now on; without such a note nothing
-- was called, and those of earlier deaths remain.
local function note_death(lane)
  local tries = redis.call('HGET', lane, 'tries')
  if tries then
    redis.call('HSET', lane, 'suspects', tries)
    redis.call('HDEL', lane, 'tries')
  end
  return redis.call('HINCRBY', lane, 'deaths', 1)
end

