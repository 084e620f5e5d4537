-- Spindle 0.1.0
-- Each script begins with this file. KEYS[1] is the prefix of all keys of a queue in the engine. It contains the
-- queue's name in braces, so that all keys are in one slot of a cluster.
--
-- In these scripts, the key of a job is its exclusive key: jobs with the same key never run at the same time. A job is
-- blocked while it waits for the end of another job with its key. Times are in ms of the engine's clock.
--
-- jobs     hash    id -> frame (the signed task or command) of each job without an outcome
-- ready    stream  claimable jobs, with the fields j: id, r: mailbox, k: key. An entry is a hint: the hashes decide
--                  whether the job exists and can be claimed
-- urgent   stream  like "ready", but claimed first: jobs that their owner has given back or lost, retried dead letters,
--                  and jobs whose key is free again. But a job whose delay is over is in "ready"
-- running  hash    id -> record of each claimed job
-- tried    hash    id -> record of an unclaimed job that was claimed before, or was submitted with a key or a delay.
--                  After the next claim, an old record can remain
-- delayed  zset    id -> time at which the delay is over
-- keys     hash    key -> id of the job that holds the key
-- blocked:<key>    zset: ids of the jobs that wait for the key, in order
-- watchers hash    id -> names of the mailboxes that were added after the submission, separated by commas
-- agents   zset    owner -> end of its lease; 0 after the owner has released the lease
-- about    hash    owner -> description of the agent in JSON
-- idle     zset    owner -> number of jobs that its last claim requested but did not get
-- begun    hash    owner -> highest sequence number of a job of the owner that can have started
-- spared   hash    owner -> 1 if its lease was extended after the engine had not been available (renew.lua)
-- dead     hash    id -> frame of each dead letter
-- reason   hash    id -> reason of each dead letter in JSON
-- deadkeys hash    id -> key of each dead letter with a key
-- died     zset    id -> time at which the job became a dead letter
-- meta     hash    counters, and: "blocked": number of blocked jobs; "entries": expected number of entries of both
--                  streams; "heard": time of the last heartbeat of any agent; "line": last score in a blocked:<key>;
--                  "audited": time of the last audit; "unlisted": number of running jobs without an entry in a stream
-- audit, auditor   see repair.lua
-- late:<mailbox>   number of the caller's newest connection; submissions over older connections are refused
-- result:<id>      frame of the outcome
-- task:<id>        digest of a job with an outcome and an id that its caller has chosen; expires with the outcome
-- cancelled:<id>   '' if the outcome of the job is a cancellation; digest of the job if it was cancelled without one
-- items:<id>       stream of the stored items of a generator
--
-- A record in "tried" is {claims, crashes, failures, mailbox, key, flags, last owner that refused the job, time of the
-- first postponement if the job was ever postponed}.
-- A record in "running" is {number of the claim, crashes, failures, mailbox, key, flags, owner, stream, entry, time of
-- the claim, last owner that refused the job, sequence number among the owner's claims, listening, time of the first
-- postponement}. For a generator, listening is 0 while mailboxes receive messages about items. After that, listening is
-- the time of the first message that no mailbox received. Before that, listening is ''. If only the process that has
-- submitted the job knows the id, the mailbox of this process counts as listening from the beginning.
local P = KEYS[1]
local JOBS, RUNNING, TRIED, META = P .. 'jobs', P .. 'running', P .. 'tried', P .. 'meta'
local STREAMS = {u = P .. 'urgent', r = P .. 'ready'}
-- Flags of a job. CANCELLED: it was cancelled. LOST: the lease of an owner of the job has ended. STREAMED: it has
-- stored items. BLOCKED: it waits for its key. UNWANTED: no process takes its items any more. TOO_LARGE: only in an
-- answer, which has the size of the frame instead of the frame. The two highest bits are the number of refusals. In an
-- answer, they are both set if another owner has refused the job, because one more refusal then ends the job.
local CANCELLED, LOST, STREAMED, BLOCKED, UNWANTED, TOO_LARGE = 1, 2, 4, 8, 16, 32
local REFUSAL, MAX_REFUSALS = 64, 3
local MAX_INLINE_BYTES = 65536 -- maximum size of an outcome in a message; a caller fetches larger ones
local SIGNATURE_BYTES = 42 -- bytes of a frame before its body, which depend on the signing key
local MAX_ANSWER_BYTES = 4194304 -- an answer with this many bytes of frames gets no further frame
local CLAIM_BATCH = 16 -- entries that are read before the size of their frames is checked
local MAX_SKIPPED = 500 -- number of entries of removed jobs after which a script stops reading entries
local CANCELLED_SECONDS = 3600 -- time for which a cancellation without an outcome is recorded
local UNWANTED_SECONDS = 60 -- for this time, outcome and items of a cancelled job stay if no other process knows its id
-- Matches ids that dispatch() has created. Such ids, and ids that begin with the caller's mailbox, are used only once.
-- So no later job can have such an id, and the digest of the job is not stored.
local RANDOM_ID = '^' .. string.rep('%x', 24) .. '%-$'
local PRIVATE_ID = '^(' .. string.rep('%x', 18) .. ')%-.' -- an id that begins with the caller's mailbox
local LISTENER_TIMEOUT_MS = 10000 -- time without a listener after which items are not wanted any more
local MAX_SET_BACK_JOBS = 10000 -- maximum number of delayed jobs whose times are changed when the clock is set back
local REFUSED_DELAY_MS = 200 -- delay of a job when the owner that has refused it tries to claim it again
local call = redis.call

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local counts = {}
local function count(name, by)
  counts[name] = (counts[name] or 0) + by
end

-- Adds the changes of this script to the counters.
local function saveCounts()
  for name, by in pairs(counts) do
    if by ~= 0 then call('HINCRBY', META, name, by) end
  end
  counts = {}
end

-- Calls a variadic command in parts that fit on Lua's stack.
local function callInParts(command, key, list)
  for i = 1, #list, 4000 do
    call(command, key, unpack(list, i, math.min(i + 3999, #list)))
  end
end

-- Returns the values of the fields in the list, false for a field that does not exist.
local function hmget(key, list)
  local found = {}
  for i = 1, #list, 4000 do
    local part = call('HMGET', key, unpack(list, i, math.min(i + 3999, #list)))
    for k = 1, #part do found[i + k - 1] = part[k] end
  end
  return found
end

-- Appends a job to a stream, so that it can be claimed. A running audit (repair.lua) must know all new entries.
local auditing = nil
local function enqueue(stream, id, mailbox, key)
  if key == '' then
    call('XADD', STREAMS[stream], '*', 'j', id, 'r', mailbox)
  else
    call('XADD', STREAMS[stream], '*', 'j', id, 'r', mailbox, 'k', key)
  end
  count('entries', 1)
  if auditing == nil then auditing = call('EXISTS', P .. 'audit') == 1 end
  if auditing then call('SADD', P .. 'audit', id, key == '' and '' or ' ' .. key) end
end

local function hasLease(owner)
  local ends = call('ZSCORE', P .. 'agents', owner)
  return ends and tonumber(ends) > now
end

local function hasFlag(record, flag)
  return math.floor(record[6] / flag) % 2 == 1
end

-- Returns whether only the process that has submitted the job knows the id. The ids that a process creates for submit()
-- and map() begin with the name of its mailbox.
local function isPrivate(id, record)
  return record[4] ~= '' and string.sub(id, 1, #record[4]) == record[4]
end

-- Returns whether the job has ended, and only the process that has submitted it knows the id. For other ended jobs, a
-- digest is stored, unless the id is random.
local function isPrivateAndEnded(id)
  return call('HEXISTS', JOBS, id) == 0 and not string.find(id, RANDOM_ID) and call('EXISTS', P .. 'task:' .. id) == 0
end

-- Returns a hash of the part of a frame that does not depend on the signing key.
local function digest(frame)
  return redis.sha1hex(string.sub(frame, SIGNATURE_BYTES + 1))
end

-- Calls f with the name of each mailbox of a job. The second argument is the job's value in "watchers".
local function eachMailbox(record, watchers, f)
  if record[4] ~= '' then f(record[4]) end
  for mailbox in string.gmatch(watchers or '', '[^,]+') do
    if mailbox ~= record[4] then f(mailbox) end
  end
end

-- Returns a decoded record; nil if the record is missing, or a change by hand has made it unreadable.
local function decoded(packed)
  local isRead, record = pcall(cmsgpack.unpack, packed or '')
  return isRead and type(record) == 'table' and #record >= 5 and record or nil
end

-- Sends a message to all mailboxes of a running job. Returns the number of mailboxes that have received it.
local function notifyMailboxes(id, record, message)
  local listeners = 0
  eachMailbox(record, call('HGET', P .. 'watchers', id), function(mailbox)
    listeners = listeners + call('PUBLISH', 'spindle:to:' .. mailbox, message)
  end)
  return listeners
end

-- Notifies as many idle agents as are needed to claim `jobs` jobs.
local function wakeAgents(jobs)
  while jobs > 0 do
    local agent = call('ZPOPMAX', P .. 'idle') -- the owner and the number of jobs that it wants
    if #agent == 0 then return end
    if call('PUBLISH', 'spindle:to:' .. agent[1], 'w') > 0 then jobs = jobs - tonumber(agent[2]) end
  end
end

-- Notifies an agent of a new delay of less than 2 s, because the delay could end before the agent's next heartbeat. The
-- receiver is an idle agent, if possible another one than the owner. Without an idle agent, it is the owner.
local function notifyOfDelay(delay, owner)
  if delay >= 2000 then return end
  local idle = call('ZREVRANGE', P .. 'idle', 0, 1)
  local receiver = idle[1] == owner and idle[2] or idle[1] or owner
  if receiver then call('PUBLISH', 'spindle:to:' .. receiver, 'd' .. struct.pack('<I4', delay)) end
end

-- Deletes entries of the streams. The argument has a list of entry ids for each stream.
local function drop(entries)
  for stream, list in pairs(entries) do
    if #list > 0 then
      for i = 1, #list, 4000 do
        local last = math.min(i + 3999, #list)
        call('XACK', STREAMS[stream], 'agents', unpack(list, i, last))
        count('entries', -call('XDEL', STREAMS[stream], unpack(list, i, last)))
      end
    end
  end
end

-- Calls f(id, time of the entry) for each claimable job of a stream, the oldest first, until f returns true. Deletes
-- entries of removed jobs. Stops after the batch in which the number of deleted entries exceeds `maxRemoved`.
local function eachWaiting(stream, maxRemoved, f)
  local from, removed = '-', 0
  local groups = redis.pcall('XINFO', 'GROUPS', STREAMS[stream])
  for i = 1, groups[1] and #groups[1] or 0, 2 do
    if groups[1][i] == 'last-delivered-id' then from = '(' .. groups[1][i + 1] end
  end
  repeat
    local entries, obsolete, enough = call('XRANGE', STREAMS[stream], from, '+', 'COUNT', 200), {}, false
    for i = 1, #entries do
      local id = entries[i][2][2]
      from = '(' .. entries[i][1]
      if call('HEXISTS', JOBS, id) == 0 then
        obsolete[#obsolete + 1] = entries[i][1]
      elseif call('HEXISTS', RUNNING, id) == 0 then
        enough = f(id, tonumber(string.match(entries[i][1], '^%d+')))
        if enough then break end
      end
    end
    drop({[stream] = obsolete})
    removed = removed + #obsolete
  until enough or removed > maxRemoved or #entries < 200
end

-- If the engine's clock was set back since the last heartbeat, sets the leases and the next delays back as well.
-- Otherwise, jobs would wait until the clock shows the old time again. Returns the time of the last heartbeat.
local function applyClockChange()
  local heard = tonumber(call('HGET', META, 'heard') or now)
  if heard <= now then return heard end
  local function setBack(key, scored)
    local set = {}
    for i = 1, #scored, 2 do
      if tonumber(scored[i + 1]) > 0 then -- 0: the owner has released its lease
        set[#set + 1] = scored[i + 1] - (heard - now)
        set[#set + 1] = scored[i]
      end
    end
    callInParts('ZADD', key, set)
  end
  setBack(P .. 'agents', call('ZRANGE', P .. 'agents', 0, -1, 'WITHSCORES'))
  setBack(P .. 'delayed', call('ZRANGE', P .. 'delayed', 0, MAX_SET_BACK_JOBS - 1, 'WITHSCORES'))
  call('HSET', META, 'heard', now)
  return now
end

-- Makes a job claimable after `delay` ms. First corrects the stored times if the clock was set back. Otherwise, a later
-- correction would also change the time of this job.
local isClockChecked = false
local function delayJob(id, delay)
  if not isClockChecked then applyClockChange() end
  isClockChecked = true
  call('ZADD', P .. 'delayed', now + delay, id)
end

-- Makes a job claimable again, at once or after `delay` ms. Returns the number of jobs that can be claimed now.
local function requeue(id, record, delay)
  local tried = {record[1], record[2], record[3], record[4], record[5], record[6], record[11] or '', record[14]}
  call('HSET', TRIED, id, cmsgpack.pack(tried))
  if delay > 0 then
    delayJob(id, delay)
    return 0
  end
  enqueue('u', id, record[4], record[5])
  return 1
end

-- Removes the flag BLOCKED from a job's record.
local function unblock(id, record)
  record[6] = record[6] - BLOCKED
  call('HSET', TRIED, id, cmsgpack.pack(record))
  count('blocked', -1)
end

-- Makes the next job that waits for a free key claimable. Returns 1, or 0 if no job waits.
local function unblockNext(key)
  while true do
    local waiting = call('ZPOPMIN', P .. 'blocked:' .. key)[1]
    if not waiting then return 0 end
    local record = call('HGET', TRIED, waiting)
    record = record and decoded(record)
    if not record and call('HEXISTS', JOBS, waiting) == 1 then record = {0, 0, 0, '', key, BLOCKED, ''} end
    if record and hasFlag(record, BLOCKED) then -- otherwise the data was changed by hand
      unblock(waiting, record)
      enqueue('u', waiting, record[4], key)
      return 1
    end
  end
end

-- Frees the key if the job holds it, and makes the next job with the key claimable. Returns 1, or 0 without such a job.
local function unlock(key, id)
  local holder = key ~= '' and call('HGET', P .. 'keys', key) or id
  if key == '' or holder ~= id then return 0 end
  call('HDEL', P .. 'keys', key)
  return unblockNext(key)
end

-- Returns the status of a job, '' if it is unknown.
local function statusOf(id)
  if call('HEXISTS', RUNNING, id) == 1 then return 'running' end
  if call('HEXISTS', JOBS, id) == 1 then return call('ZSCORE', P .. 'delayed', id) and 'delayed' or 'waiting' end
  if call('HEXISTS', P .. 'dead', id) == 1 then return 'dead' end
  local hasOutcome, cancelled = call('EXISTS', P .. 'result:' .. id) == 1, call('GET', P .. 'cancelled:' .. id)
  -- A digest is obsolete if the job has an outcome: a caller that does not know this key has added the job again.
  if cancelled and (cancelled == '' or not hasOutcome) then return 'cancelled' end
  return hasOutcome and 'done' or ''
end

-- Asks the owner of a running job to end the job. Later claims of the job are cancelled, too.
local function cancelRunning(id, record)
  if not hasFlag(record, CANCELLED) then
    record[6] = record[6] + CANCELLED
    call('HSET', RUNNING, id, cmsgpack.pack(record))
  end
  call('PUBLISH', 'spindle:to:' .. record[7], 'c' .. struct.pack('<Bc0I4', #id, id, record[1]))
end

-- Removes an unclaimed job. Returns the number of jobs that can be claimed now.
local function removeUnclaimed(id)
  if call('HDEL', JOBS, id) == 1 then
    count('cancelled', 1)
    call('HDEL', P .. 'watchers', id)
  end
  call('DEL', P .. 'items:' .. id) -- a later job with this id must not get the items of this job
  local record = call('HGET', TRIED, id)
  if not record then return 0 end
  record = decoded(record) or {0, 0, 0, '', '', 0}
  call('HDEL', TRIED, id)
  call('ZREM', P .. 'delayed', id)
  if hasFlag(record, BLOCKED) then
    count('blocked', -call('ZREM', P .. 'blocked:' .. record[5], id))
  elseif record[5] ~= '' and call('HEXISTS', P .. 'keys', record[5]) == 0 then
    return unblockNext(record[5]) -- the key was kept free for this job; the next blocked job gets it
  end
  return 0
end

-- Makes a job of an ended lease claimable again. This counts as a crash, unless the owner has released the lease or the
-- job can't have started. Returns the number of jobs that can be claimed now.
local function requeueLost(id, record, isReleased, begun)
  if not isReleased and (record[12] or 0) <= (begun or math.huge) then record[2] = record[2] + 1 end
  if not hasFlag(record, LOST) then record[6] = record[6] + LOST end
  call('HDEL', RUNNING, id)
  return requeue(id, record, 0) + unlock(record[5], id)
end

-- Makes a running job whose record can't be decoded claimable again. Its number of attempts and its key are lost.
local function resetRunning(id)
  call('HDEL', RUNNING, id)
  call('HDEL', TRIED, id)
  enqueue('u', id, '', '')
  count('repaired', 1)
  return 1
end

-- Makes jobs of an ended lease claimable again, at most 1000. The next heartbeats do the same for the rest. Returns the
-- number of jobs that can be claimed now, and the number of jobs that the owner had.
local function reclaim(owner, isReleased)
  local remaining, ready, requeued = 1000, 0, 0
  local begun = tonumber(call('HGET', P .. 'begun', owner) or math.huge)
  for name, stream in pairs(STREAMS) do
    local pending = redis.pcall('XPENDING', stream, 'agents', '-', '+', remaining, owner)
    if pending.err then pending = {} end
    local entries = {u = {}, r = {}}
    for i = 1, #pending do
      local entry = call('XRANGE', stream, pending[i][1], pending[i][1])[1]
      local id = entry and entry[2][2]
      local record = id and call('HGET', RUNNING, id)
      record = record and decoded(record)
      if record and record[7] == owner then
        ready = ready + requeueLost(id, record, isReleased, begun)
        requeued = requeued + 1
      end
      table.insert(entries[name], pending[i][1])
    end
    drop(entries)
    remaining = remaining - #pending
  end
  count(isReleased and 'released' or 'lost', requeued)
  if remaining > 0 then -- no job of the owner is left
    for _, stream in pairs(STREAMS) do redis.pcall('XGROUP', 'DELCONSUMER', stream, 'agents', owner) end
    call('ZREM', P .. 'agents', owner)
    call('ZREM', P .. 'idle', owner)
    call('HDEL', P .. 'about', owner)
    call('HDEL', P .. 'begun', owner)
    call('HDEL', P .. 'spared', owner)
    call('HDEL', META, 'unlisted') -- this number possibly includes jobs of this owner
  end
  return ready, requeued
end

-- Makes jobs whose delay is over claimable, at most `limit`. Returns their number.
local function promote(limit)
  local due = call('ZRANGEBYSCORE', P .. 'delayed', '-inf', now, 'LIMIT', 0, limit)
  if #due == 0 then return 0 end
  callInParts('ZREM', P .. 'delayed', due)
  local records = hmget(TRIED, due)
  local promoted = 0
  for i = 1, #due do
    if call('HEXISTS', JOBS, due[i]) == 1 then
      local record = records[i] and decoded(records[i]) or {0, 0, 0, '', ''}
      enqueue('r', due[i], record[4], record[5])
      promoted = promoted + 1
    end
  end
  return promoted
end

-- Reads new entries of a stream for an owner, at most `limit`. Creates the consumer group if it does not exist. Returns
-- the entries, or an error of the engine.
local function readGroup(stream, owner, limit)
  local got = redis.pcall('XREADGROUP', 'GROUP', 'agents', owner, 'COUNT', limit, 'STREAMS', STREAMS[stream], '>')
  if got and got.err then
    if not string.find(got.err, 'NOGROUP', 1, true) then return got end
    call('XGROUP', 'CREATE', STREAMS[stream], 'agents', '0', 'MKSTREAM')
    got = call('XREADGROUP', 'GROUP', 'agents', owner, 'COUNT', limit, 'STREAMS', STREAMS[stream], '>')
  end
  return got and got[1][2] or {}
end

-- Encodes a claimed job for the answer. If the owner can't read such a large frame, the answer has its size instead.
local function encodeDelivery(id, record, frame, maxFrame)
  local flags, content = record[6], frame
  if (record[11] or '') ~= '' and record[11] ~= record[7] then flags = flags % REFUSAL + MAX_REFUSALS * REFUSAL end
  if #frame > maxFrame then flags, content = flags + TOO_LARGE, tostring(#frame) end
  local postponed = record[14] and math.max(0, math.floor((now - record[14]) / 1000)) or 0
  local claimable = tonumber(string.sub(record[9] or '', 1, 13)) or now -- an entry's id begins with its time
  local waited = math.max(0, math.min(0xffffffff, (record[10] or now) - claimable))
  return struct.pack(
    '<Bc0I4I4I4BI4I4I4c0', #id, id, record[1], record[2], record[3], flags, postponed, waited, #content, content
  )
end

-- Claims up to `want` jobs for an owner. If they do not all fit into an answer, or if too many entries belong to jobs
-- that can't be claimed, a message makes the owner claim again. The first job gets the sequence number `first`. Appends
-- the jobs to `out`, and returns their number, or an error of the engine.
local function claim(owner, want, out, first, maxFrame)
  local given, read, bytes, full = 0, 0, 0, false
  for _, stream in ipairs({'u', 'r'}) do
    while given < want and (stream == 'r' or call('XLEN', STREAMS.u) > 0) do
      if read > want + MAX_SKIPPED or full then -- many entries were useless, or the answer is full
        call('PUBLISH', 'spindle:to:' .. owner, 'w')
        return given
      end
      local entries = readGroup(stream, owner, math.min(want - given, CLAIM_BATCH))
      if entries.err then return entries end
      if #entries == 0 then break end
      read = read + #entries
      local ids = {}
      for i = 1, #entries do ids[i] = entries[i][2][2] end
      local frames = hmget(JOBS, ids)
      local records = call('HLEN', TRIED) > 0 and hmget(TRIED, ids) or {}
      local active = hmget(RUNNING, ids)
      local useless, seen, set = {u = {}, r = {}}, {}, {}
      for i = 1, #ids do
        local id, fields = ids[i], entries[i][2]
        local mailbox, key = fields[4] or '', fields[6] or ''
        local record = records[i] and decoded(records[i]) or {0, 0, 0, mailbox, key, 0}
        local isObsolete = not frames[i] or active[i] or seen[id]
          or records[i] and (hasFlag(record, BLOCKED) or call('ZSCORE', P .. 'delayed', id))
        if isObsolete then
          -- A blocked or delayed job has an old entry if it was cancelled and submitted again.
          table.insert(useless[stream], entries[i][1])
        elseif record[7] == owner and call('ZCOUNT', P .. 'agents', '(' .. now, '+inf') > 1 then
          table.insert(useless[stream], entries[i][1]) -- the owner has refused this job, so another owner gets it
          seen[id] = true
          delayJob(id, REFUSED_DELAY_MS)
        elseif bytes > 0 and bytes + #frames[i] > MAX_ANSWER_BYTES then
          table.insert(useless[stream], entries[i][1]) -- the job goes into the next answer
          seen[id], full = true, true
          enqueue('u', id, mailbox, key)
        elseif record[5] ~= '' and call('HSETNX', P .. 'keys', record[5], id) == 0
          and call('HGET', P .. 'keys', record[5]) ~= id then
          table.insert(useless[stream], entries[i][1])
          seen[id] = true
          record[6] = record[6] + BLOCKED
          call('HSET', TRIED, id, cmsgpack.pack(record))
          call('ZADD', P .. 'blocked:' .. record[5], call('HINCRBY', META, 'line', 1), id)
          count('blocked', 1)
        else
          seen[id] = true
          record[1] = record[1] + 1
          record[11], record[12] = record[7] or '', first + given
          if record[8] then record[13], record[14] = '', record[8] end
          record[7], record[8], record[9], record[10] = owner, stream, entries[i][1], now
          set[#set + 1] = id
          set[#set + 1] = cmsgpack.pack(record)
          out[#out + 1] = encodeDelivery(id, record, frames[i], maxFrame)
          bytes = bytes + #frames[i]
          full = full or bytes >= MAX_ANSWER_BYTES
          given = given + 1
        end
      end
      callInParts('HSET', RUNNING, set)
      drop(useless)
    end
  end
  return given
end
