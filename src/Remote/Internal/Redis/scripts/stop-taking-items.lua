-- Declares that no process will take further items of a job. put-items.lua then returns -1. If no other process knows
-- the id, drops the stored items, and drops the outcome soon. ARGV: id.
local id = ARGV[1]
local record = call('HGET', RUNNING, id)
record = record and decoded(record)
if record and not hasFlag(record, UNWANTED) then
  record[6] = record[6] + UNWANTED
  call('HSET', RUNNING, id, cmsgpack.pack(record))
  if isPrivate(id, record) then call('UNLINK', P .. 'items:' .. id) end
  call('PUBLISH', 'spindle:to:' .. record[7], 't' .. struct.pack('<Bc0', #id, id))
elseif isPrivateAndEnded(id) then
  call('UNLINK', P .. 'items:' .. id)
  call('EXPIRE', P .. 'result:' .. id, UNWANTED_SECONDS, 'LT')
end
return 1
