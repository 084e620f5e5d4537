-- ARGV: ids, how many, mailbox
local WATCHERS = 1000 -- bytes of the mailboxes that wait for one job, about 50 of them
local packed, number, mailbox = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local out, bytes, at = {}, 0, 1
for i = 1, number do
  local id
  id, at = struct.unpack('<Bc0', packed, at)
  local outcome = call('GET', P .. 'result:' .. id)
  if outcome and bytes + #outcome > ANSWER and bytes > 0 then
    out[#out + 1] = struct.pack('<BI4', 3, 0)
  elseif outcome then
    out[#out + 1] = struct.pack('<BI4c0', 2, #outcome, outcome)
    bytes = bytes + #outcome
  elseif call('HEXISTS', JOBS, id) == 1 then
    local watchers = call('HGET', P .. 'watchers', id) or ''
    if not string.find(',' .. watchers .. ',', ',' .. mailbox .. ',', 1, true) then
      if #watchers > WATCHERS then watchers = string.match(watchers, ',(.*)$') end -- who is forgotten looks for the outcome itself, later
      call('HSET', P .. 'watchers', id, watchers == '' and mailbox or watchers .. ',' .. mailbox)
    end
    out[#out + 1] = struct.pack('<BI4', 1, 0)
  else
    out[#out + 1] = struct.pack('<BI4', 0, 0)
  end
end
return table.concat(out)
