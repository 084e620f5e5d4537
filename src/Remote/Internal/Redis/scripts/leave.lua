-- Ends the lease of an owner, none of whose jobs runs any more. ARGV: owner.
local owner = ARGV[1]
if not call('ZSCORE', P .. 'agents', owner) then return 0 end
call('ZADD', P .. 'agents', 0, owner) -- jobs that reclaim() leaves now are released with another agent's next heartbeat
local ready = reclaim(owner, true)
saveCounts()
wakeAgents(ready)
return 1
