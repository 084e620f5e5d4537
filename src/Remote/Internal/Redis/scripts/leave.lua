-- ARGV: owner
call('ZADD', P .. 'agents', 'XX', 0, ARGV[1])
call('ZREM', P .. 'idle', ARGV[1])
return 1
