-- Adds jobs. Returns the number of accepted jobs and the positions of conflicts. ARGV: jobs, number of jobs, maximum
-- number of jobs in the queue, mailbox, 1 if jobs with these ids may exist, number of the caller's connection.
local packed, jobCount, maxJobs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local mailbox, checkIds = ARGV[4], ARGV[5] == '1'
-- A caller that gets no answer submits the jobs again over another connection. The first submission can arrive even
-- later, for example when the network works again. If the outcomes of its jobs were dropped before that, the jobs would
-- run twice. So a submission over an older connection is refused.
local connection = tonumber(ARGV[6])
local newest = tonumber(call('GET', P .. 'late:' .. mailbox) or 1)
if connection < newest then return 'late' end
if connection > newest then call('SET', P .. 'late:' .. mailbox, connection, 'EX', 3600) end

local room = maxJobs - call('HLEN', JOBS)
-- Returns whether the id is known, and whether it belongs to a job with another frame.
local function known(id, frame)
  local other = call('HGET', JOBS, id) or call('HGET', P .. 'dead', id)
  if other then return true, string.sub(other, SIGNATURE_BYTES + 1) ~= string.sub(frame, SIGNATURE_BYTES + 1) end
  if call('EXISTS', P .. 'result:' .. id, P .. 'cancelled:' .. id) == 0 then return false, false end
  local task = call('GET', P .. 'task:' .. id) or call('GET', P .. 'cancelled:' .. id) or ''
  return true, task ~= '' and task ~= digest(frame)
end

local conflicts = {}
local at, accepted, added, soonest = 1, 0, 0, math.huge
for i = 1, jobCount do
  local id, key, delay, frame
  id, key, delay, frame, at = struct.unpack('<Bc0Bc0dI4c0', packed, at)
  local isKnown, isOther = false, false
  if checkIds then isKnown, isOther = known(id, frame) end
  if isKnown then
    -- A job with this id was added before. attach.lua returns its outcome.
    if isOther then conflicts[#conflicts + 1] = ' ' .. (i - 1) end
  elseif room <= 0 then
    break
  else
    call('HSET', JOBS, id, frame)
    if delay > 0 or key ~= '' then call('HSET', TRIED, id, cmsgpack.pack({0, 0, 0, mailbox, key, 0})) end
    if delay > 0 then
      delayJob(id, delay)
      soonest = math.min(soonest, delay)
    else
      enqueue('r', id, mailbox, key)
      added = added + 1
    end
    count('submitted', 1)
    room = room - 1
  end
  accepted = i
end
saveCounts()
wakeAgents(added)
notifyOfDelay(soonest)
return accepted .. table.concat(conflicts)
