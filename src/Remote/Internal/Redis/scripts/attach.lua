-- Looks up jobs and their outcomes, and adds the mailbox to jobs without an outcome. ARGV: ids, number of ids, mailbox.
-- For each job, the answer has a status byte, the size of the outcome, and the outcome. The byte is 0 for an unknown
-- job, 1 without an outcome, 2 with an outcome, 3 if the outcome does not fit into the answer, and 4 for a job that was
-- cancelled and has no outcome.
local MAX_WATCHERS_BYTES = 1000 -- maximum size of the mailbox names of one job, about 50 names
local packed, idCount, mailbox = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local out, bytes, at = {}, 0, 1
for i = 1, idCount do
  local id
  id, at = struct.unpack('<Bc0', packed, at)
  local outcome = call('GET', P .. 'result:' .. id)
  if outcome and bytes + #outcome > MAX_ANSWER_BYTES and bytes > 0 then
    out[#out + 1] = struct.pack('<BI4', 3, 0)
  elseif outcome then
    out[#out + 1] = struct.pack('<BI4c0', 2, #outcome, outcome)
    bytes = bytes + #outcome
  elseif call('HEXISTS', JOBS, id) == 1 then
    local watchers = call('HGET', P .. 'watchers', id) or ''
    if not string.find(',' .. watchers .. ',', ',' .. mailbox .. ',', 1, true) then
      -- Drops the oldest mailbox. The process with that mailbox gets the outcome with its next regular lookup.
      if #watchers > MAX_WATCHERS_BYTES then watchers = string.match(watchers, ',(.*)$') end
      call('HSET', P .. 'watchers', id, watchers == '' and mailbox or watchers .. ',' .. mailbox)
    end
    out[#out + 1] = struct.pack('<BI4', 1, 0)
  else
    out[#out + 1] = struct.pack('<BI4', call('EXISTS', P .. 'cancelled:' .. id) == 1 and 4 or 0, 0)
  end
end
return table.concat(out)
