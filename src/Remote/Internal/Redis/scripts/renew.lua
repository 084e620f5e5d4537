-- ARGV: owner, lease in ms, whether the owner is new, its description in JSON, dead letters to keep, their retention
local MAX_SET_BACK_JOBS = 10000 -- most delayed jobs whose times are changed at once
local owner, lease, joins, about, mostDead, oldestDead = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])

-- When no agent was heard of for a whole lease, the engine was away. Then expired leases are extended once, so that
-- agents that live can report that their jobs were ended.
local heard = tonumber(call('HGET', META, 'heard') or now)
if heard > now then
  -- The engine's clock was set back. Without this, the jobs of a lost agent and delayed jobs would wait until the clock
  -- shows the old time again.
  local function setBack(key, scored)
    local set = {}
    for i = 1, #scored, 2 do
      if tonumber(scored[i + 1]) > 0 then -- 0: the agent has left
        set[#set + 1] = scored[i + 1] - (heard - now)
        set[#set + 1] = scored[i]
      end
    end
    callInParts('ZADD', key, set)
  end
  setBack(P .. 'agents', call('ZRANGE', P .. 'agents', 0, -1, 'WITHSCORES'))
  setBack(P .. 'delayed', call('ZRANGE', P .. 'delayed', 0, MAX_SET_BACK_JOBS - 1, 'WITHSCORES'))
  call('HSET', META, 'heard', now)
elseif now - heard >= lease then
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
for i = 1, #dead, 2 do ready = ready + reclaim(dead[i], dead[i + 1] == '0') end
local buried = call('ZRANGEBYSCORE', P .. 'died', '-inf', now - 1000 * oldestDead, 'LIMIT', 0, 1000)
local surplus = call('ZCARD', P .. 'died') - mostDead
if #buried == 0 and surplus > 0 then buried = call('ZRANGE', P .. 'died', 0, math.min(surplus, 1000) - 1) end
if #buried > 0 then
  callInParts('HDEL', P .. 'dead', buried)
  callInParts('HDEL', P .. 'why', buried)
  callInParts('HDEL', P .. 'deadkeys', buried)
  callInParts('ZREM', P .. 'died', buried)
  count('forgotten', #buried)
end
saveCounts()
wakeAgents(ready)

local due = call('ZRANGE', P .. 'delayed', 0, 0, 'WITHSCORES')
return due[2] and math.max(0, due[2] - now) or -1
