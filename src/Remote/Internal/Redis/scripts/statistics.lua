-- Returns the statistics of the queue, one "name value" per line.
local out = {}
local function add(name, value) out[#out + 1] = name .. ' ' .. value end
local jobs, running, delayed = call('HLEN', JOBS), call('HLEN', RUNNING), call('ZCARD', P .. 'delayed')
local blocked = math.max(0, call('HGET', META, 'blocked') or 0)
add('waiting', math.max(0, jobs - running - delayed - blocked))
add('running', running)
add('delayed', delayed)
add('blocked', blocked)
add('dead', call('HLEN', P .. 'dead'))
add('agents', call('ZCOUNT', P .. 'agents', '(' .. now, '+inf'))
local oldest = nil
for stream in pairs(STREAMS) do
  eachWaiting(stream, MAX_SKIPPED, function(_, since)
    oldest = math.max(oldest or 0, now - since)
    return true
  end)
end
saveCounts()
add('oldest_ms', oldest or 0)
local COUNTERS = {
  'submitted', 'done', 'died', 'cancelled', 'retried', 'postponed', 'released', 'lost', 'stale', 'repaired',
  'dead_letters_retried', 'forgotten',
}
for _, name in ipairs(COUNTERS) do
  add(name .. '_total', call('HGET', META, name) or 0)
end
return table.concat(out, '\n')
