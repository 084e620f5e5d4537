-- Returns items and drops those before them. ARGV: id, number of items that were taken, largest number to return.
local id, from, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local items = P .. 'items:' .. id
local gone = call('XTRIM', items, 'MINID', (from + 1) .. '-0')
if gone > 0 then
  local record = decoded(call('HGET', RUNNING, id))
  if record then call('PUBLISH', 'spindle:to:' .. record[7], 't' .. struct.pack('<Bc0', #id, id)) end
end
local out = {}
for i, entry in ipairs(call('XRANGE', items, (from + 1) .. '-0', '+', 'COUNT', most)) do
  out[i] = struct.pack('<I4c0', #entry[2][2], entry[2][2])
end
return table.concat(out)
