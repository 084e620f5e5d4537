-- Settles jobs and claims others. ARGV: owner, settlements, their number, jobs to claim, seconds to keep outcomes,
-- number of the first claim, number of the last claim that may have begun or '' if unchanged, bytes of the largest frame
-- that the owner can read.
local owner, packed, number, want, keep, first, begun = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6] or 0), ARGV[7] or ''
local maxFrame = tonumber(ARGV[8])
local DONE, DEAD, RETRY, RELEASE, REFUSED, ELSEWHERE = 1, 2, 3, 4, 6, 7 -- 5: cancelled
if not hasLease(owner) then return 'gone' end
if begun ~= '' then call('HSET', P .. 'begun', owner, begun) end

local ids, settlements, at = {}, {}, 1
for i = 1, number do
  local id, delivered, kind, crashes, fails, delay, frame, why
  id, delivered, kind, crashes, fails, delay, frame, why, at = struct.unpack('<Bc0I4BI4I4dI4c0I4c0', packed, at)
  ids[i] = id
  settlements[i] = {delivered, kind, crashes, fails, delay, frame, why}
end

-- ids from dispatch(); like those that begin with the mailbox, they are used once
local RANDOM = '^' .. string.rep('%x', 24) .. '%-$'
local ready, stale, soonest = 0, {}, math.huge
if number > 0 then
  local records = hmget(RUNNING, ids)
  local watchers = call('HLEN', P .. 'watchers') > 0 and hmget(P .. 'watchers', ids) or {}
  local entries, gone, over, messages, seen = {u = {}, r = {}}, {}, {}, {}, {}
  local function tell(mailbox, id, frame)
    local message = messages[mailbox]
    if not message then
      message = {}
      messages[mailbox] = message
    end
    message[#message + 1] = #frame <= MAX_INLINE_BYTES and struct.pack('<Bc0I4c0', #id, id, #frame, frame) or struct.pack('<Bc0I4', #id, id, 0)
  end
  for i = 1, number do
    local id, settlement = ids[i], settlements[i]
    local record = records[i] and decoded(records[i])
    if records[i] and not record then ready = ready + resetRunning(id) end
    if not record or seen[id] or record[7] ~= owner or record[1] ~= settlement[1] then
      stale[#stale + 1] = struct.pack('<Bc0', #id, id)
    else
      seen[id] = true
      table.insert(entries[record[8]], record[9])
      gone[#gone + 1] = id
      local kind = settlement[2]
      local refused = record[11] or ''
      if kind == REFUSED and refused ~= '' and refused ~= owner then kind = DEAD end -- refused by two owners
      if kind == REFUSED or kind == ELSEWHERE then record[11] = owner end
      if kind == RETRY or kind == RELEASE or kind == REFUSED or kind == ELSEWHERE then
        record[2], record[3] = settlement[3], settlement[4]
        if settlement[5] > 0 then soonest = math.min(soonest, settlement[5]) end
        ready = ready + requeue(id, record, settlement[5]) + unlock(record[5], id)
        count((kind == RETRY or kind == ELSEWHERE) and 'retried' or 'released', 1)
      else
        over[#over + 1] = id
        call('SET', P .. 'result:' .. id, settlement[6], 'EX', keep)
        if string.sub(id, 1, #record[4]) ~= record[4] and not string.find(id, RANDOM) or record[4] == '' then
          call('SET', P .. 'task:' .. id, digest(call('HGET', JOBS, id) or ''), 'EX', keep)
        end
        if hasFlag(record, STREAMED) then call('EXPIRE', P .. 'items:' .. id, keep) end
        if kind == DEAD then
          call('HSET', P .. 'dead', id, call('HGET', JOBS, id) or '')
          call('HSET', P .. 'why', id, settlement[7])
          if record[5] ~= '' then call('HSET', P .. 'deadkeys', id, record[5]) end
          call('ZADD', P .. 'died', now, id)
        end
        count(kind == DONE and 'done' or kind == DEAD and 'died' or 'cancelled', 1)
        eachMailbox(record, watchers[i], function(mailbox) tell(mailbox, id, settlement[6]) end)
        if record[5] ~= '' then ready = ready + unlock(record[5], id) end
      end
    end
  end
  drop(entries)
  callInParts('HDEL', RUNNING, gone)
  callInParts('HDEL', JOBS, over)
  if call('HLEN', TRIED) > 0 then callInParts('HDEL', TRIED, over) end
  if #watchers > 0 then callInParts('HDEL', P .. 'watchers', over) end
  for mailbox, message in pairs(messages) do call('PUBLISH', 'spindle:to:' .. mailbox, 'r' .. table.concat(message)) end
  count('stale', #stale)
end

local out = {struct.pack('<I4', #stale), table.concat(stale)}
if want > 0 then
  ready = ready + promote(want)
  local given = claim(owner, want, out, first, maxFrame)
  if type(given) == 'table' then return given end
  ready = ready - given
  if given < want then
    call('ZADD', P .. 'idle', want - given, owner)
  else
    call('ZREM', P .. 'idle', owner)
  end
end
saveCounts()
wakeAgents(ready)
notifyOfDelay(soonest, owner)
return table.concat(out)
