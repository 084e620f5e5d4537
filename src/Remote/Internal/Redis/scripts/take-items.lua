-- Returns items and drops the items before them. An answer with MAX_ANSWER_BYTES or more gets no further item.
-- ARGV: id, number of items that were taken before, maximum number of items to return.
local id, taken, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local items = P .. 'items:' .. id
local dropped = call('XTRIM', items, 'MINID', (taken + 1) .. '-0')
if dropped > 0 then
  local record = decoded(call('HGET', RUNNING, id))
  if record then call('PUBLISH', 'spindle:to:' .. record[7], 't' .. struct.pack('<Bc0', #id, id)) end
end
local out, bytes, from = {}, 0, (taken + 1) .. '-0'
while #out < limit and bytes < MAX_ANSWER_BYTES do
  local entry = call('XRANGE', items, from, '+', 'COUNT', 1)[1]
  if not entry then break end
  out[#out + 1] = struct.pack('<I4c0', #entry[2][2], entry[2][2])
  bytes, from = bytes + #entry[2][2], '(' .. entry[1]
end
if #out == 0 and call('HEXISTS', JOBS, id) == 0 then call('UNLINK', items) end -- no more items can follow
return table.concat(out)
