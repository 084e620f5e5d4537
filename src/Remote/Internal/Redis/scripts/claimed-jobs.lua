-- Returns the owner's claimed jobs that the owner does not know, and known jobs that were cancelled. ARGV: owner, ids
-- and claim numbers of the known jobs, number of known jobs, size of the largest frame that the owner can read.
local owner, packed, knownCount, maxFrame = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if not hasLease(owner) then return 'lease ended' end
local known, at = {}, 1
for i = 1, knownCount do
  local id, claim
  id, claim, at = struct.unpack('<Bc0I4', packed, at)
  known[id] = claim
end
local out, bytes = {}, 0
for _, stream in pairs(STREAMS) do
  local pending = redis.pcall('XPENDING', stream, 'agents', '-', '+', 4000, owner)
  if pending.err then pending = {} end
  for i = 1, #pending do
    local entry = call('XRANGE', stream, pending[i][1], pending[i][1])[1]
    local id = entry and entry[2][2]
    local record = id and call('HGET', RUNNING, id)
    record = record and decoded(record)
    local isWanted = record and record[7] == owner and (record[1] ~= known[id] or hasFlag(record, CANCELLED))
    if isWanted and bytes < MAX_ANSWER_BYTES then
      local frame = record[1] ~= known[id] and call('HGET', JOBS, id) or ''
      out[#out + 1] = encodeDelivery(id, record, frame, maxFrame)
      bytes = bytes + #frame
    end
  end
end
return table.concat(out)
