-- Sends a task's report to the job's mailboxes. ARGV: owner, id, number of the claim, frame.
local owner, id, number, frame = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local record = call('HGET', RUNNING, id)
record = record and decoded(record)
if record and record[7] == owner and record[1] == number then
  notifyMailboxes(id, record, 'p' .. struct.pack('<Bc0I4c0', #id, id, #frame, frame))
end
return 1
