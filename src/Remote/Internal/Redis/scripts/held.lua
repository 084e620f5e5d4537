-- ARGV: owner, ids that it knows of, how many
local owner, packed, number = ARGV[1], ARGV[2], tonumber(ARGV[3])
if not hasLease(owner) then return 'gone' end
local known, at = {}, 1
for i = 1, number do
  local id
  id, at = struct.unpack('<Bc0', packed, at)
  known[id] = true
end
local out = {}
for _, stream in pairs(STREAMS) do
  local pending = redis.pcall('XPENDING', stream, 'agents', '-', '+', 4000, owner)
  if pending.err then pending = {} end
  for i = 1, #pending do
    local entry = call('XRANGE', stream, pending[i][1], pending[i][1])[1]
    local id = entry and entry[2][2]
    local record = id and not known[id] and call('HGET', RUNNING, id)
    record = record and cmsgpack.unpack(record)
    if record and record[7] == owner then out[#out + 1] = delivery(id, record, call('HGET', JOBS, id)) end
  end
end
return table.concat(out)
