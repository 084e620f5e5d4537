-- ARGV: jobs, how many, how many the queue may have, mailbox, whether an id may be known already, number of the connection
local packed, number, room, mailbox, maybeKnown = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5] == '1'
-- Who has no answer asks again on another connection. What then comes on the one before, such as when the network is mended, would be taken in
-- a second time when its outcome was read and forgotten meanwhile.
local connection = tonumber(ARGV[6])
local newest = tonumber(call('GET', P .. 'late:' .. mailbox) or 1)
if connection < newest then return 'late' end
if connection > newest then call('SET', P .. 'late:' .. mailbox, connection, 'EX', 3600) end

room = room - call('HLEN', JOBS)
-- Whether a job is known under an id, and whether it is another one than this frame's.
local function known(id, frame)
  local other = call('HGET', JOBS, id) or call('HGET', P .. 'dead', id)
  if other then return true, string.sub(other, SEAL + 1) ~= string.sub(frame, SEAL + 1) end
  if call('EXISTS', P .. 'result:' .. id) == 0 then return false, false end
  local task = call('GET', P .. 'task:' .. id)
  return true, task and task ~= digest(frame)
end

local conflicts = {}
local at, accepted, added, soonest = 1, 0, 0, math.huge
for i = 1, number do
  local id, key, delay, frame
  id, key, delay, frame, at = struct.unpack('<Bc0Bc0dI4c0', packed, at)
  local isKnown, isOther = false, false
  if maybeKnown then isKnown, isOther = known(id, frame) end
  if isKnown then
    -- It was taken in before; its outcome is asked for by look.lua.
    if isOther then conflicts[#conflicts + 1] = ' ' .. (i - 1) end
  elseif room <= 0 then
    break
  else
    call('HSET', JOBS, id, frame)
    if delay > 0 or key ~= '' then call('HSET', TRIED, id, cmsgpack.pack({0, 0, 0, mailbox, key, 0})) end
    if delay > 0 then
      call('ZADD', P .. 'delayed', now + delay, id)
      soonest = math.min(soonest, delay)
    else
      put('r', id, mailbox, key)
      added = added + 1
    end
    count('submitted', 1)
    room = room - 1
  end
  accepted = i
end
saveCounts()
wake(added)
tellOfDelay(soonest)
return accepted .. table.concat(conflicts)
