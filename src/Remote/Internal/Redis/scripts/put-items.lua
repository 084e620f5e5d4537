-- Stores items of a generator. Returns the number of stored items that were not taken; -1 if no more items are wanted.
-- ARGV: owner, id, number of the claim, number of items before these, items.
local owner, id, number, first = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if not hasLease(owner) then return 'lease ended' end
local record = call('HGET', RUNNING, id)
record = record and decoded(record)
if not record or record[7] ~= owner or record[1] ~= number then return -1 end
if hasFlag(record, CANCELLED) or hasFlag(record, UNWANTED) then return -1 end
local items = P .. 'items:' .. id
for i = 5, #ARGV do
  local added = redis.pcall('XADD', items, (first + i - 4) .. '-0', 'f', ARGV[i])
  -- The engine refuses an item that is already stored. This is not a failure, because the request may be a repetition.
  if added.err and not string.find(added.err, 'equal or smaller', 1, true) then return added end
end
call('EXPIRE', items, 86400)
if #ARGV > 4 and not hasFlag(record, STREAMED) then
  record[6] = record[6] + STREAMED
  call('HSET', RUNNING, id, cmsgpack.pack(record))
end
if #ARGV > 4 or first == 0 then
  local listeners = notifyMailboxes(id, record, 'i' .. struct.pack('<Bc0', #id, id))
  local since = record[13] or ''
  -- Mailboxes have listened for items before, but none has received a message for LISTENER_TIMEOUT_MS.
  if since ~= '' and since > 0 and listeners == 0 and now - since >= LISTENER_TIMEOUT_MS then return -1 end
  local wasListening = since == 0 or since == '' and isPrivate(id, record)
  local listening = listeners > 0 and 0 or wasListening and now or since
  if listening ~= since then
    record[11], record[12], record[13] = record[11] or '', record[12] or 0, listening
    call('HSET', RUNNING, id, cmsgpack.pack(record))
  end
end
return call('XLEN', items)
