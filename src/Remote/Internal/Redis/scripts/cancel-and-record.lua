-- Cancels jobs. Records the cancellation of jobs that no agent can settle any more. Returns the number of jobs, and the
-- status of each job before this call. ARGV: ids, number of ids.
local packed, idCount = ARGV[1], tonumber(ARGV[2])
local statuses, at, ready = {}, 1, 0
for i = 1, idCount do
  local id
  id, at = struct.unpack('<Bc0', packed, at)
  local status, running = statusOf(id), call('HGET', RUNNING, id)
  local record = running and decoded(running)
  if record then cancelRunning(id, record) end
  local isSettledByOwner = record and hasLease(record[7])
  if not isSettledByOwner and call('HEXISTS', JOBS, id) == 1 then
    if running then
      call('HDEL', RUNNING, id)
      if record then drop({[record[8]] = {record[9]}}) end
    end
    record = record or decoded(call('HGET', TRIED, id) or '') or {[4] = string.match(id, PRIVATE_ID) or '', [5] = ''}
    local watchers = call('HGET', P .. 'watchers', id)
    call('SET', P .. 'cancelled:' .. id, digest(call('HGET', JOBS, id)), 'EX', CANCELLED_SECONDS)
    ready = ready + removeUnclaimed(id) + (running and unlock(record[5], id) or 0)
    -- An outcome of 0 bytes makes the callers look up the job.
    local message = 'r' .. struct.pack('<Bc0I4', #id, id, 0)
    eachMailbox(record, watchers, function(mailbox) call('PUBLISH', 'spindle:to:' .. mailbox, message) end)
  end
  statuses[i] = struct.pack('<Bc0', #status, status)
end
saveCounts()
wakeAgents(ready)
return struct.pack('<I4', idCount) .. table.concat(statuses)
