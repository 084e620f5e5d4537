-- Takes or renews a lease. Returns the ms until the next delay is over, or -1. ARGV: owner, lease in ms, 1 to take a
-- new lease, description of the owner in JSON, number of dead letters to keep, their retention in seconds.
local owner, lease, isNew, about = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]
local maxDead, deadRetention = tonumber(ARGV[5]), tonumber(ARGV[6])

-- If no agent has renewed its lease for the length of a lease, the engine was probably not available. Then leases that
-- have ended since the last renewal are extended once. So running agents can end their jobs and release their leases.
local heard = applyClockChange()
if now - heard >= lease then
  for _, other in ipairs(call('ZRANGEBYSCORE', P .. 'agents', heard, now)) do
    if other ~= owner and call('HSETNX', P .. 'spared', other, 1) == 1 then
      call('ZADD', P .. 'agents', now + lease / 2, other)
    end
  end
end
if not isNew and not hasLease(owner) then return 'lease ended' end
call('HSET', META, 'heard', now)
call('ZADD', P .. 'agents', now + lease, owner)
call('HSET', P .. 'about', owner, about)
call('HDEL', P .. 'spared', owner)

local ready = promote(1000)
local ended = call('ZRANGEBYSCORE', P .. 'agents', '-inf', now, 'WITHSCORES', 'LIMIT', 0, 4)
for i = 1, #ended, 2 do
  local isReleased = ended[i + 1] == '0'
  local claimable, requeued = reclaim(ended[i], isReleased)
  ready = ready + claimable
  if not isReleased then
    call('PUBLISH', 'spindle:to:' .. owner, 'l' .. struct.pack('<Bc0I4', #ended[i], ended[i], requeued))
  end
end
local dropped = call('ZRANGEBYSCORE', P .. 'died', '-inf', now - 1000 * deadRetention, 'LIMIT', 0, 1000)
local surplus = call('ZCARD', P .. 'died') - maxDead
if #dropped == 0 and surplus > 0 then dropped = call('ZRANGE', P .. 'died', 0, math.min(surplus, 1000) - 1) end
if #dropped > 0 then
  callInParts('HDEL', P .. 'dead', dropped)
  callInParts('HDEL', P .. 'reason', dropped)
  callInParts('HDEL', P .. 'deadkeys', dropped)
  callInParts('ZREM', P .. 'died', dropped)
  count('forgotten', #dropped)
end
saveCounts()
wakeAgents(ready)

local due = call('ZRANGE', P .. 'delayed', 0, 0, 'WITHSCORES')
return due[2] and math.max(0, due[2] - now) or -1
