-- Returns jobs of a status, each as its id and its details in JSON. ARGV: status, maximum number of jobs.
local status, limit = ARGV[1], tonumber(ARGV[2])
local out = {}
local UNREADABLE = {reason = 'its record was changed by hand and cannot be read'}
-- Returns a decoded table; nil if the bytes can't be decoded.
local function read(decode, bytes)
  local isRead, value = pcall(decode, bytes)
  return isRead and type(value) == 'table' and value or nil
end
local function add(id, details)
  local json = cjson.encode(details)
  out[#out + 1] = struct.pack('<Bc0I4c0', #id, id, #json, json)
end
if status == 'running' then
  local cursor = '0'
  repeat
    local part = call('HSCAN', RUNNING, cursor, 'COUNT', 100)
    cursor = part[1]
    for i = 1, #part[2], 2 do
      local record = read(cmsgpack.unpack, part[2][i + 1])
      local details = UNREADABLE
      if record then
        details = {
          owner = record[7], claim_number = record[1], crashes = record[2], failures = record[3], since = record[10],
        }
      end
      if #out < limit then add(part[2][i], details) end
    end
  until cursor == '0' or #out >= limit
elseif status == 'delayed' then
  local due = call('ZRANGE', P .. 'delayed', 0, limit - 1, 'WITHSCORES')
  for i = 1, #due, 2 do
    local record = call('HGET', TRIED, due[i])
    record = record and read(cmsgpack.unpack, record) or {0, 0, 0}
    add(due[i], {due = tonumber(due[i + 1]), crashes = record[2], failures = record[3]})
  end
elseif status == 'dead' then
  local died = call('ZREVRANGE', P .. 'died', 0, limit - 1, 'WITHSCORES')
  for i = 1, #died, 2 do
    local reason = call('HGET', P .. 'reason', died[i])
    local details = reason and reason ~= '' and (read(cjson.decode, reason) or {reason = UNREADABLE.reason}) or {}
    details.died = tonumber(died[i + 1])
    add(died[i], details)
  end
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
