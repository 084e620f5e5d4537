-- ARGV: owner, seconds of its lease in ms, whether it is new, what it says of itself
local owner, lease, joins, about = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]

-- When nobody was heard of for a lease, it was the engine that was away: who lives is given the time to say so, and that what it had is ended; once.
local heard = tonumber(call('HGET', META, 'heard') or now)
if now - heard >= lease then
  for _, other in ipairs(call('ZRANGEBYSCORE', P .. 'agents', heard, now)) do
    if other ~= owner and call('HSETNX', P .. 'spared', other, 1) == 1 then call('ZADD', P .. 'agents', now + lease / 2, other) end
  end
end
if not joins and not hasLease(owner) then return 'gone' end
call('HSET', META, 'heard', now)
call('ZADD', P .. 'agents', now + lease, owner)
call('HSET', P .. 'about', owner, about)
call('HDEL', P .. 'spared', owner)

local ready = promote(1000)
local dead = call('ZRANGEBYSCORE', P .. 'agents', '-inf', now, 'WITHSCORES', 'LIMIT', 0, 4)
for i = 1, #dead, 2 do ready = ready + bury(dead[i], dead[i + 1] == '0') end
saveCounts()
wake(ready)

local due = call('ZRANGE', P .. 'delayed', 0, 0, 'WITHSCORES')
return due[2] and math.max(0, due[2] - now) or -1
