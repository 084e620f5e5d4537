-- ARGV: owner, seconds of its lease in ms, whether it is new, what it says of itself
local owner, lease, joins, about = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]
if not joins and not hasLease(owner) then return 'gone' end
call('ZADD', P .. 'agents', now + lease, owner)
call('HSET', P .. 'about', owner, about)

local ready = promote(1000)
local dead = call('ZRANGEBYSCORE', P .. 'agents', '-inf', now, 'LIMIT', 0, 4)
for _, other in ipairs(dead) do
  local left = 1000
  for name, stream in pairs(STREAMS) do
    local pending = redis.pcall('XPENDING', stream, 'agents', '-', '+', left, other)
    if pending.err then pending = {} end
    local entries = {u = {}, r = {}}
    for i = 1, #pending do
      local entry = call('XRANGE', stream, pending[i][1], pending[i][1])[1]
      local id = entry and entry[2][2]
      local record = id and call('HGET', RUNNING, id)
      record = record and cmsgpack.unpack(record)
      if record and record[7] == other then
        ready = ready + lose(id, record)
        count('lost', 1)
      end
      table.insert(entries[name], pending[i][1])
    end
    drop(entries)
    left = left - #pending
  end
  if left > 0 then
    for _, stream in pairs(STREAMS) do redis.pcall('XGROUP', 'DELCONSUMER', stream, 'agents', other) end
    call('ZREM', P .. 'agents', other)
    call('ZREM', P .. 'idle', other)
    call('HDEL', P .. 'about', other)
    call('HDEL', META, 'unlisted') -- what it had may be among them
  end
end
saveCounts()
wake(ready)

local due = call('ZRANGE', P .. 'delayed', 0, 0, 'WITHSCORES')
return due[2] and math.max(0, due[2] - now) or -1
