-- Turns dead letters into claimable jobs with 0 attempts and 0 crashes. ARGV: ids, number of ids.
local packed, idCount = ARGV[1], tonumber(ARGV[2])
local at, retried = 1, 0
for i = 1, idCount do
  local id
  id, at = struct.unpack('<Bc0', packed, at)
  local frame = call('HGET', P .. 'dead', id)
  if frame then
    call('HDEL', P .. 'dead', id)
    call('HDEL', P .. 'reason', id)
    call('ZREM', P .. 'died', id)
    call('DEL', P .. 'result:' .. id, P .. 'items:' .. id)
    local key = call('HGET', P .. 'deadkeys', id) or ''
    call('HSET', JOBS, id, frame)
    if key ~= '' then
      call('HDEL', P .. 'deadkeys', id)
      call('HSET', TRIED, id, cmsgpack.pack({0, 0, 0, '', key, 0}))
    end
    enqueue('u', id, '', key)
    count('dead_letters_retried', 1)
    retried = retried + 1
  end
end
saveCounts()
wakeAgents(retried)
return retried
