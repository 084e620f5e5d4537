-- Settles jobs and claims others. ARGV: owner, settlements, number of settlements, number of jobs to claim, seconds for
-- which outcomes are kept, sequence number of the first claimed job, sequence number of the last job that the owner can
-- start before its next call or '' if unchanged, size of the largest frame that the owner can read.
local owner, packed, settlementCount, want = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local first, lastStartable = tonumber(ARGV[6] or 0), ARGV[7] or ''
local retention, maxFrame = tonumber(ARGV[5]), tonumber(ARGV[8])
-- The kinds of settlements of SettlementKind.php. STOPPED is the case Cancelled. ELSEWHERE is the case RetryElsewhere.
local DONE, DEAD, RETRY, RELEASE, STOPPED, REFUSED, ELSEWHERE, POSTPONE = 1, 2, 3, 4, 5, 6, 7, 8
if not hasLease(owner) then return 'lease ended' end
if lastStartable ~= '' then call('HSET', P .. 'begun', owner, lastStartable) end

local ids, settlements, at = {}, {}, 1
for i = 1, settlementCount do
  local id, claimNumber, kind, crashes, failures, delay, frame, reason
  id, claimNumber, kind, crashes, failures, delay, frame, reason, at = struct.unpack('<Bc0I4BI4I4dI4c0I4c0', packed, at)
  ids[i] = id
  settlements[i] = {claimNumber, kind, crashes, failures, delay, frame, reason}
end

local ready, stale, soonest = 0, {}, math.huge
if settlementCount > 0 then
  local records = hmget(RUNNING, ids)
  local watchers = call('HLEN', P .. 'watchers') > 0 and hmget(P .. 'watchers', ids) or {}
  local entries, settled, ended, messages, seen = {u = {}, r = {}}, {}, {}, {}, {}
  local function addMessage(mailbox, id, frame)
    local message = messages[mailbox]
    if not message then
      message = {}
      messages[mailbox] = message
    end
    local isInline = #frame <= MAX_INLINE_BYTES
    message[#message + 1] = isInline
      and struct.pack('<Bc0I4c0', #id, id, #frame, frame)
      or struct.pack('<Bc0I4', #id, id, 0)
  end
  for i = 1, settlementCount do
    local id, settlement = ids[i], settlements[i]
    local record = records[i] and decoded(records[i])
    if records[i] and not record then ready = ready + resetRunning(id) end
    if not record or seen[id] or record[7] ~= owner or record[1] ~= settlement[1] then
      stale[#stale + 1] = struct.pack('<Bc0', #id, id)
    else
      seen[id] = true
      table.insert(entries[record[8]], record[9])
      settled[#settled + 1] = id
      local kind = settlement[2]
      if kind == REFUSED or kind == ELSEWHERE then record[11] = owner end
      if kind == REFUSED and record[6] < MAX_REFUSALS * REFUSAL then record[6] = record[6] + REFUSAL end
      if kind == POSTPONE then record[14] = record[14] or now end
      if kind == RETRY or kind == RELEASE or kind == REFUSED or kind == ELSEWHERE or kind == POSTPONE then
        record[2], record[3] = settlement[3], settlement[4]
        if hasFlag(record, CANCELLED) then settlement[5] = 0 end -- the next claim ends the job
        if settlement[5] > 0 then soonest = math.min(soonest, settlement[5]) end
        ready = ready + requeue(id, record, settlement[5]) + unlock(record[5], id)
        local isRetry = kind == RETRY or kind == ELSEWHERE
        count(isRetry and 'retried' or kind == POSTPONE and 'postponed' or 'released', 1)
      else
        ended[#ended + 1] = id
        local private = isPrivate(id, record)
        local isUnwanted = kind == STOPPED
          or record[6] > 0 and (hasFlag(record, CANCELLED) or hasFlag(record, UNWANTED))
        local kept = private and isUnwanted and math.min(retention, UNWANTED_SECONDS) or retention
        call('SET', P .. 'result:' .. id, settlement[6], 'EX', kept)
        if kind == STOPPED and not private then call('SET', P .. 'cancelled:' .. id, '', 'EX', kept) end
        if not private and (record[4] == '' or not string.find(id, RANDOM_ID)) then
          call('SET', P .. 'task:' .. id, digest(call('HGET', JOBS, id) or ''), 'EX', retention)
        end
        if hasFlag(record, STREAMED) then call('EXPIRE', P .. 'items:' .. id, kept) end
        if kind == DEAD then
          call('HSET', P .. 'dead', id, call('HGET', JOBS, id) or '')
          call('HSET', P .. 'reason', id, settlement[7])
          if record[5] ~= '' then call('HSET', P .. 'deadkeys', id, record[5]) end
          call('ZADD', P .. 'died', now, id)
        end
        count(kind == DONE and 'done' or kind == DEAD and 'died' or 'cancelled', 1)
        eachMailbox(record, watchers[i], function(mailbox) addMessage(mailbox, id, settlement[6]) end)
        if record[5] ~= '' then ready = ready + unlock(record[5], id) end
      end
    end
  end
  drop(entries)
  callInParts('HDEL', RUNNING, settled)
  callInParts('HDEL', JOBS, ended)
  if call('HLEN', TRIED) > 0 then callInParts('HDEL', TRIED, ended) end
  if #watchers > 0 then callInParts('HDEL', P .. 'watchers', ended) end
  for mailbox, message in pairs(messages) do call('PUBLISH', 'spindle:to:' .. mailbox, 'r' .. table.concat(message)) end
  count('stale', #stale)
end

local out = {struct.pack('<I4', #stale), table.concat(stale)}
if want > 0 then
  ready = ready + promote(want)
  local given = claim(owner, want, out, first, maxFrame)
  if type(given) == 'table' then return given end -- an error
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
