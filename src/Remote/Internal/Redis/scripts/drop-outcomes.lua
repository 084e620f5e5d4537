-- Drops outcomes. ARGV: ids.
local outcomes = {}
for i = 1, #ARGV do outcomes[i] = P .. 'result:' .. ARGV[i] end
return call('UNLINK', unpack(outcomes))
