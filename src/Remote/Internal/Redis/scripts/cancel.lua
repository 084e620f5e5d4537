-- Cancels jobs. Returns the ids of removed and unknown jobs. ARGV: ids, number of ids, "unclaimed" to cancel only jobs
-- that no agent has claimed.
local packed, idCount, onlyUnclaimed = ARGV[1], tonumber(ARGV[2]), ARGV[3] == 'unclaimed'
local removed, at, ready = {}, 1, 0
for i = 1, idCount do
  local id
  id, at = struct.unpack('<Bc0', packed, at)
  local record = call('HGET', RUNNING, id)
  if record and onlyUnclaimed then
    -- An agent has claimed the job, so the job continues.
  elseif not record and call('EXISTS', P .. 'result:' .. id) == 1 then
    -- A waiter of the job can still receive the outcome and the items.
    if isPrivateAndEnded(id) then call('EXPIRE', P .. 'items:' .. id, UNWANTED_SECONDS, 'LT') end
  elseif record then
    record = decoded(record)
    if record and not hasFlag(record, CANCELLED) then
      record[6] = record[6] + CANCELLED
      call('HSET', RUNNING, id, cmsgpack.pack(record))
    end
    if record then call('PUBLISH', 'spindle:to:' .. record[7], 'c' .. struct.pack('<Bc0I4', #id, id, record[1])) end
  else
    if call('HDEL', JOBS, id) == 1 then
      count('cancelled', 1)
      call('HDEL', P .. 'watchers', id)
    end
    call('DEL', P .. 'items:' .. id) -- a later job with this id must not get the items of this job
    record = call('HGET', TRIED, id)
    if record then
      record = decoded(record) or {0, 0, 0, '', '', 0}
      call('HDEL', TRIED, id)
      call('ZREM', P .. 'delayed', id)
      if hasFlag(record, BLOCKED) then
        count('blocked', -call('ZREM', P .. 'blocked:' .. record[5], id))
      elseif record[5] ~= '' and call('HEXISTS', P .. 'keys', record[5]) == 0 then
        ready = ready + unblockNext(record[5]) -- the key was kept free for this job; the next blocked job gets it
      end
    end
    removed[#removed + 1] = struct.pack('<Bc0', #id, id)
  end
end
saveCounts()
wakeAgents(ready)
return struct.pack('<I4', #removed) .. table.concat(removed)
