-- Deletes dead letters and their outcomes, so that their ids can be used again. ARGV: ids, number of ids.
local packed, idCount = ARGV[1], tonumber(ARGV[2])
local at, deleted = 1, 0
for i = 1, idCount do
  local id
  id, at = struct.unpack('<Bc0', packed, at)
  if call('HDEL', P .. 'dead', id) == 1 then
    deleted = deleted + 1
    call('DEL', P .. 'items:' .. id, P .. 'result:' .. id, P .. 'task:' .. id)
  end
  call('HDEL', P .. 'reason', id)
  call('HDEL', P .. 'deadkeys', id)
  call('ZREM', P .. 'died', id)
end
return deleted
