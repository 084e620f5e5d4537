-- ARGV: owner
local owner = ARGV[1]
if not call('ZSCORE', P .. 'agents', owner) then return 0 end
call('ZADD', P .. 'agents', 0, owner) -- what is not buried now will be with the next beat of another
local ready = bury(owner, true)
saveCounts()
wake(ready)
return 1
