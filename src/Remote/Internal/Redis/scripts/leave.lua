-- Ends the lease of an owner, none of whose jobs runs any more. ARGV: owner.
local owner = ARGV[1]
if not call('ZSCORE', P .. 'agents', owner) then return 0 end
call('ZADD', P .. 'agents', 0, owner) -- jobs that bury() leaves now are released with another agent's next beat
local ready = bury(owner, true)
saveCounts()
wake(ready)
return 1
