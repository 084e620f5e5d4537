-- Finds jobs that no agent could claim, because they have no entry in a stream, and makes them claimable again.
-- Such jobs exist if an operator has trimmed a stream, or deleted a consumer or a key, or if the engine has lost data.
--
-- ARGV: step, cursor, id of the audit. An audit consists of many calls, each for a limited number of entries or jobs.
-- Returns the number of jobs that this call has repaired, and then the next step and cursor, or 'ok' at the end.
--
-- The key "auditor" has the id of the audit that is in progress. The set "audit" has the ids of the jobs with an unread
-- entry. If such a job has a key, the set also has " KEY": a space and the key. The step "entries" and enqueue() add
-- these members. Both Redis keys expire 30 s after the last call.
local step, cursor, auditId = ARGV[1], ARGV[2], ARGV[3]
local BATCH, HOUR_MS = 500, 3600000
local AUDIT = P .. 'audit'

-- Returns the number of entries that were read and whose jobs are not settled. Also returns the number of consumers of
-- one stream: the larger number if the two streams differ.
local function pendingEntries()
  local pending, consumers = 0, 0
  for _, stream in pairs(STREAMS) do
    local groups = redis.pcall('XINFO', 'GROUPS', stream)
    for _, group in ipairs(groups.err and {} or groups) do
      for i = 1, #group, 2 do
        if group[i] == 'pending' then pending = pending + group[i + 1] end
        if group[i] == 'consumers' then consumers = math.max(consumers, group[i + 1]) end
      end
    end
  end
  return pending, consumers
end

-- Returns a number that increases by 1 whenever a job is blocked or unblocked.
local function blockings()
  return 2 * (call('HGET', META, 'line') or 0) - (call('HGET', META, 'blocked') or 0)
end

-- Finds consumers of the streams without a lease, and makes their jobs claimable again, because no agent would ever
-- settle these jobs. Returns the number of jobs that can be claimed now.
local function reclaimWithoutLease()
  local ready = 0
  for _, stream in pairs(STREAMS) do
    local consumers = redis.pcall('XINFO', 'CONSUMERS', stream, 'agents')
    for _, consumer in ipairs(consumers.err and {} or consumers) do
      if not call('ZSCORE', P .. 'agents', consumer[2]) then ready = ready + reclaim(consumer[2], false) end
    end
  end
  return ready
end

if step == 'check' then
  local entryCount = call('XLEN', STREAMS.u) + call('XLEN', STREAMS.r)
  local pending, consumers = pendingEntries()
  local unlisted = call('HLEN', RUNNING) - pending
  -- The last audit found `known` running jobs without an entry. It did not repair these jobs, because their owners had
  -- leases and could still settle them.
  local known = tonumber(call('HGET', META, 'unlisted') or 0)
  if unlisted >= 0 and unlisted < known then
    known = unlisted
    call('HSET', META, 'unlisted', known)
  end
  -- Each job has an entry, or is delayed or blocked. An audit follows if the counts contradict this. It also follows
  -- once an hour, to find damage that the counts do not show, such as a deleted zset of blocked jobs.
  local withoutEntry = call('ZCARD', P .. 'delayed') + math.max(0, call('HGET', META, 'blocked') or 0)
  local isFirst = call('HSETNX', META, 'audited', now) == 1 and call('HLEN', JOBS) > 0 -- also if "meta" was deleted
  if not isFirst
    and call('HLEN', TRIED) >= withoutEntry
    and entryCount >= tonumber(call('HGET', META, 'entries') or 0)
    and unlisted == known
    and call('HLEN', JOBS) <= entryCount + withoutEntry
    and consumers <= call('ZCARD', P .. 'agents')
    and now - call('HGET', META, 'audited') < HOUR_MS then
    return '0 ok'
  end
  if call('SET', P .. 'auditor', auditId, 'NX', 'EX', 30) == false then return '0 ok' end
  call('UNLINK', AUDIT)
  call('SADD', AUDIT, '')
  call('EXPIRE', AUDIT, 30)
  return '0 entries u -'
end

if call('GET', P .. 'auditor') ~= auditId then return '0 ok' end -- this audit paused too long, and "audit" has expired
call('EXPIRE', P .. 'auditor', 30)
call('EXPIRE', AUDIT, 30)
if step == 'entries' then
  -- Adds the ids of unread entries to "audit".
  local stream, from = string.match(cursor, '^(%w) (.+)$')
  local entries = call('XRANGE', STREAMS[stream], from, '+', 'COUNT', BATCH)
  local ids = {}
  local last = '0-0'
  local groups = redis.pcall('XINFO', 'GROUPS', STREAMS[stream])
  if not groups.err and groups[1] then
    for i = 1, #groups[1], 2 do
      if groups[1][i] == 'last-delivered-id' then last = groups[1][i + 1] end
    end
  end
  local lastTime, lastNumber = string.match(last, '^(%d+)-(%d+)$')
  for _, entry in ipairs(entries) do
    local time, number = string.match(entry[1], '^(%d+)-(%d+)$')
    local isLater = tonumber(time) > tonumber(lastTime)
    local isSameTime = tonumber(time) == tonumber(lastTime)
    if isLater or isSameTime and tonumber(number) > tonumber(lastNumber) then
      ids[#ids + 1] = entry[2][2]
      local key = entry[2][6]
      if key and call('HEXISTS', JOBS, entry[2][2]) == 1 then ids[#ids + 1] = ' ' .. key end
    elseif call('HEXISTS', RUNNING, entry[2][2]) == 0 then
      drop({[stream] = {entry[1]}}) -- the entry was read, and no owner has the job
    end
  end
  if #ids > 0 then call('SADD', AUDIT, unpack(ids)) end
  saveCounts()
  if #entries == BATCH then return '0 entries ' .. stream .. ' (' .. entries[#entries][1] end
  return stream == 'u' and '0 entries r -' or '0 jobs 0 16 0 ' .. blockings()
end

-- Returns the key that a job without a record waits for; nil if it waits for none.
local keys = nil
local function keyOf(id)
  if not keys then
    keys = {}
    for _, key in ipairs(call('HKEYS', P .. 'keys')) do
      for _, waiting in ipairs(call('ZRANGE', P .. 'blocked:' .. key, 0, -1)) do keys[waiting] = key end
    end
  end
  return keys[id]
end

-- Checks the jobs. HSCAN also returns their frames, so the batch size depends on the size of the frames. At the end,
-- the counter of blocked jobs is corrected, unless a job was blocked or unblocked during the audit.
local from, batchSize, blocked, blockingsBefore = string.match(cursor, '^(%d+) (%d+) (%d+) (-?%d+)$')
local part = call('HSCAN', JOBS, from, 'COUNT', batchSize)
local ready, bytes = 0, 0
for i = 1, #part[2], 2 do
  local id = part[2][i]
  bytes = bytes + #part[2][i + 1]
  local record = call('HGET', RUNNING, id)
  if record then
    record = decoded(record)
    if not record then
      ready = ready + resetRunning(id)
    elseif not call('ZSCORE', P .. 'agents', record[7]) then -- the owner has no lease, so it can't settle the job
      drop({[record[8]] = {record[9]}})
      ready = ready + requeueLost(id, record)
      count('repaired', 1)
    end
  elseif call('ZSCORE', P .. 'delayed', id) then
    if call('HEXISTS', TRIED, id) == 0 then
      call('HSET', TRIED, id, cmsgpack.pack({0, 0, 0, '', '', 0, ''})) -- the attempts and the key are lost
      count('repaired', 1)
    end
  elseif call('SISMEMBER', AUDIT, id) == 0 then
    local known = call('HGET', TRIED, id)
    if not known and keyOf(id) then
      known = cmsgpack.pack({0, 0, 0, '', keyOf(id), BLOCKED, ''})
      call('HSET', TRIED, id, known)
      count('repaired', 1)
    end
    known = known and decoded(known)
    local holder = known and known[5] ~= '' and call('HGET', P .. 'keys', known[5])
    local isHeld = holder and holder ~= id and call('HEXISTS', RUNNING, holder) == 1
      or known and call('SISMEMBER', AUDIT, ' ' .. known[5]) == 1 and call('ZSCORE', P .. 'blocked:' .. known[5], id)
    local isBlocked = known and hasFlag(known, BLOCKED)
    if not isHeld or not isBlocked then
      if holder and not isHeld then call('HDEL', P .. 'keys', known[5]) end
      if isBlocked then unblock(id, known) end
      enqueue('u', id, known and known[4] or '', known and known[5] or '')
      ready = ready + 1
      count('repaired', 1)
    else
      blocked = blocked + 1
    end
  else
    local known = decoded(call('HGET', TRIED, id))
    if known and hasFlag(known, BLOCKED) then blocked = blocked + 1 end -- it was blocked after the step "entries"
  end
end
local repaired = counts.repaired or 0
if part[1] == '0' then ready = ready + reclaimWithoutLease() end
saveCounts()
wakeAgents(ready)
if part[1] ~= '0' then
  local fitting = math.floor(MAX_ANSWER_BYTES * #part[2] / 2 / math.max(1, bytes))
  batchSize = math.max(1, math.min(BATCH, 2 * batchSize, fitting))
  return repaired .. string.format(' jobs %s %d %d %d', part[1], batchSize, blocked, blockingsBefore)
end
local entryCount = call('XLEN', STREAMS.u) + call('XLEN', STREAMS.r)
call('HSET', META, 'entries', entryCount, 'unlisted', call('HLEN', RUNNING) - pendingEntries(), 'audited', now)
if blockings() == tonumber(blockingsBefore) then call('HSET', META, 'blocked', blocked) end
call('UNLINK', AUDIT, P .. 'auditor')
return repaired .. ' ok'
