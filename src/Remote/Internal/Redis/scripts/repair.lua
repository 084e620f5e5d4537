-- Finds jobs without an entry that allows claiming them, and repairs them. Causes: an operator has trimmed a stream, or
-- deleted a consumer or a key, or the engine has lost data. ARGV: step, cursor, id of the auditor. Each step checks a
-- limited number. Returns the number of repaired jobs, and the next step and cursor or 'ok'.
--
-- During an audit, enqueue() records new entries in the set "audit".
local step, cursor, auditor = ARGV[1], ARGV[2], ARGV[3]
local SOME, HOUR = 500, 3600000
local AUDIT = P .. 'audit'

-- Returns the number of entries that were read and not settled, and the larger number of consumers of the streams.
local function readEntries()
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

-- Releases the jobs of consumers without a lease, which no agent would ever settle.
local function buryStrangers()
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
  local there = call('XLEN', STREAMS.u) + call('XLEN', STREAMS.r)
  local pending, consumers = readEntries()
  local unlisted = call('HLEN', RUNNING) - pending
  local known = tonumber(call('HGET', META, 'unlisted') or 0) -- running jobs without an entry whose agents exist
  if unlisted >= 0 and unlisted < known then
    known = unlisted
    call('HSET', META, 'unlisted', known)
  end
  -- Each job has an entry, or is delayed or blocked. A full audit once an hour finds damage that these counts do not
  -- show, such as a lost queue of a key.
  local hidden = call('ZCARD', P .. 'delayed') + math.max(0, call('HGET', META, 'blocked') or 0)
  local isNew = call('HSETNX', META, 'audited', now) == 1 and call('HLEN', JOBS) > 0 -- or the counters were deleted
  if not isNew and call('HLEN', TRIED) >= hidden and there >= tonumber(call('HGET', META, 'entries') or 0) and unlisted == known and call('HLEN', JOBS) <= there + hidden
    and consumers <= call('ZCARD', P .. 'agents') and now - call('HGET', META, 'audited') < HOUR then
    return '0 ok'
  end
  if call('SET', P .. 'auditor', auditor, 'NX', 'EX', 30) == false then return '0 ok' end
  call('UNLINK', AUDIT)
  call('SADD', AUDIT, '')
  call('EXPIRE', AUDIT, 30)
  return '0 entries u -'
end

if call('GET', P .. 'auditor') ~= auditor then return '0 ok' end -- this audit took too long, and its notes have expired
call('EXPIRE', P .. 'auditor', 30)
call('EXPIRE', AUDIT, 30)
if step == 'entries' then
  -- Records the unread entries of the streams.
  local stream, from = string.match(cursor, '^(%w) (.+)$')
  local entries = call('XRANGE', STREAMS[stream], from, '+', 'COUNT', SOME)
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
    local unread = tonumber(time) > tonumber(lastTime) or (tonumber(time) == tonumber(lastTime) and tonumber(number) > tonumber(lastNumber))
    if unread then
      ids[#ids + 1] = entry[2][2]
    elseif call('HEXISTS', RUNNING, entry[2][2]) == 0 then
      drop({[stream] = {entry[1]}}) -- the entry was read, and no agent has the job
    end
  end
  if #ids > 0 then call('SADD', AUDIT, unpack(ids)) end
  saveCounts()
  if #entries == SOME then return '0 entries ' .. stream .. ' (' .. entries[#entries][1] end
  return stream == 'u' and '0 entries r -' or '0 jobs 0 16 0 ' .. (call('HGET', META, 'blocked') or 0)
end

-- Returns the key that a job waits for, when its record is gone.
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

-- Checks the jobs. HSCAN returns their frames too, so the batch size depends on the size of the frames. The number of
-- blocked jobs is corrected only if none was blocked or unblocked during the audit.
local from, some, blocked, blockedBefore = string.match(cursor, '^(%d+) (%d+) (%d+) (-?%d+)$')
local part = call('HSCAN', JOBS, from, 'COUNT', some)
local ready, bytes = 0, 0
for i = 1, #part[2], 2 do
  local id = part[2][i]
  bytes = bytes + #part[2][i + 1]
  local record = call('HGET', RUNNING, id)
  if record then
    record = decoded(record)
    if not record then
      ready = ready + resetRunning(id)
    elseif not call('ZSCORE', P .. 'agents', record[7]) then -- the agent is gone, and its jobs could not be found
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
  end
end
local repaired = counts.repaired or 0
if part[1] == '0' then ready = ready + buryStrangers() end
saveCounts()
wakeAgents(ready)
if part[1] ~= '0' then
  some = math.max(1, math.min(SOME, 2 * some, math.floor(MAX_ANSWER_BYTES * #part[2] / 2 / math.max(1, bytes))))
  return repaired .. string.format(' jobs %s %d %d %d', part[1], some, blocked, blockedBefore)
end
local there = call('XLEN', STREAMS.u) + call('XLEN', STREAMS.r)
call('HSET', META, 'entries', there, 'unlisted', call('HLEN', RUNNING) - readEntries(), 'audited', now)
if (call('HGET', META, 'blocked') or '0') == blockedBefore then call('HSET', META, 'blocked', blocked) end
call('UNLINK', AUDIT, P .. 'auditor')
return repaired .. ' ok'
