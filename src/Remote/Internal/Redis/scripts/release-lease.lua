-- Ends the lease of an owner that runs no jobs any more. ARGV: owner.
local owner = ARGV[1]
if not call('ZSCORE', P .. 'agents', owner) then return 0 end
call('ZADD', P .. 'agents', 0, owner) -- if there are too many jobs for one call, the next heartbeats reclaim the rest
local ready = reclaim(owner, true)
saveCounts()
wakeAgents(ready)
return 1
