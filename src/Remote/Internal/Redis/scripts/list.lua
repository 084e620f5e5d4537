-- Returns jobs of a status, each as its id and its details in JSON. ARGV: status, maximum number of jobs, and '' or the
-- id of the only job to return, which then has more details. A list has only the first line of each reason.
local status, limit, onlyId = ARGV[1], tonumber(ARGV[2]), ARGV[3] or ''
local out = {}
local UNREADABLE = 'its record was changed by hand and cannot be read'
-- Returns a decoded table; nil if the bytes can't be decoded.
local function read(decode, bytes)
  local isRead, value = pcall(decode, bytes)
  return isRead and type(value) == 'table' and value or nil
end
local function add(id, details)
  local json = cjson.encode(details)
  out[#out + 1] = struct.pack('<Bc0I4c0', #id, id, #json, json)
end
local function running(packed)
  local record = read(cmsgpack.unpack, packed)
  return record and {
    owner = record[7], claim_number = record[1], crashes = record[2], failures = record[3], since = record[10],
    postponed_since = record[14],
  } or {reason = UNREADABLE}, record
end
local function delayed(id, due)
  local packed = call('HGET', TRIED, id)
  local record = packed and read(cmsgpack.unpack, packed) or {0, 0, 0}
  local details = {due = due and tonumber(due), crashes = record[2], failures = record[3]}
  details.postponed_since = record[8]
  return details, record
end
-- Returns the first line, at most 500 bytes of it. Cuts no UTF-8 character in two.
local function firstLine(text)
  local line = string.match(text, '^[^\n]*')
  local last = 500
  while string.find(line, '^[\128-\191]', last + 1) do last = last - 1 end
  return string.sub(line, 1, last)
end
-- Returns the JSON of a dead letter without most of a long reason, because decoding 64 KiB takes about 0.3 ms. Cuts
-- behind 6 bytes without a backslash, because no escape sequence has more bytes.
local function shortened(json)
  local rest = string.match(string.sub(json, -300), '","attempts":%d+,"owner":"[^"]*"}$')
  if #json < 4000 or not rest or string.sub(json, 1, 11) ~= '{"reason":"' then return json end
  for last = 3000, 1000, -1 do
    if not string.find(string.sub(json, last - 5, last), '\\', 1, true) then return string.sub(json, 1, last) .. rest end
  end
  return json
end
local function dead(id, died)
  local reason = call('HGET', P .. 'reason', id)
  if onlyId == '' and reason then reason = shortened(reason) end
  local details = reason and reason ~= '' and (read(cjson.decode, reason) or {reason = UNREADABLE}) or {}
  if onlyId == '' and type(details.reason) == 'string' then details.reason = firstLine(details.reason) end
  details.died = died and tonumber(died)
  return details
end
local function waiting(id)
  local details, record = delayed(id, nil)
  if record[6] and hasFlag(record, BLOCKED) then details.blocked = 1 end
  return details, record
end
-- Returns the details of a job with this status, and its record; nil without such a job.
local function only(id)
  if status == 'dead' then
    if call('HEXISTS', P .. 'dead', id) == 0 then return nil end
    return dead(id, call('ZSCORE', P .. 'died', id)), {[5] = call('HGET', P .. 'deadkeys', id) or ''}
  end
  local packed, due = call('HGET', RUNNING, id), call('ZSCORE', P .. 'delayed', id)
  if packed then
    if status == 'running' then return running(packed) end
  elseif call('HEXISTS', JOBS, id) == 1 then
    if due and status == 'delayed' then return delayed(id, due) end
    if not due and status == 'waiting' then return waiting(id) end
  end
end
if onlyId ~= '' then
  local details, record = only(onlyId)
  if details then
    if record and record[5] and record[5] ~= '' then details.exclusive_key = record[5] end
    add(onlyId, details)
  end
elseif status == 'running' then
  local cursor = '0'
  repeat
    local part = call('HSCAN', RUNNING, cursor, 'COUNT', 100)
    cursor = part[1]
    for i = 1, #part[2], 2 do
      if #out < limit then add(part[2][i], (running(part[2][i + 1]))) end
    end
  until cursor == '0' or #out >= limit
elseif status == 'delayed' then
  local due = call('ZRANGE', P .. 'delayed', 0, limit - 1, 'WITHSCORES')
  for i = 1, #due, 2 do add(due[i], (delayed(due[i], due[i + 1]))) end
elseif status == 'dead' then
  local died = call('ZREVRANGE', P .. 'died', 0, limit - 1, 'WITHSCORES')
  for i = 1, #died, 2 do add(died[i], dead(died[i], died[i + 1])) end
elseif status == 'waiting' then
  for _, stream in ipairs({'u', 'r'}) do
    eachWaiting(stream, 40 * MAX_SKIPPED, function(id, since)
      if #out < limit then add(id, {since = since}) end
      return #out >= limit
    end)
  end
  saveCounts()
end
return table.concat(out)
