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
    -- The items are not deleted at once, because a caller can still receive the outcome and read the items.
    if isPrivateAndEnded(id) then call('EXPIRE', P .. 'items:' .. id, UNWANTED_SECONDS, 'LT') end
  elseif record then
    record = decoded(record)
    if record then cancelRunning(id, record) end
  else
    ready = ready + removeUnclaimed(id)
    removed[#removed + 1] = struct.pack('<Bc0', #id, id)
  end
end
saveCounts()
wakeAgents(ready)
return struct.pack('<I4', #removed) .. table.concat(removed)
