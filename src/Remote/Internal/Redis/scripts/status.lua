-- Returns the status of a job, '' if it is unknown. Changes nothing. ARGV: id.
local id = ARGV[1]
if call('HEXISTS', RUNNING, id) == 1 then return 'running' end
if call('HEXISTS', JOBS, id) == 1 then return call('ZSCORE', P .. 'delayed', id) and 'delayed' or 'waiting' end
if call('HEXISTS', P .. 'dead', id) == 1 then return 'dead' end
return call('EXISTS', P .. 'result:' .. id) == 1 and 'done' or ''
