-- Returns the status of a job, '' if it is unknown. Changes nothing. ARGV: id.
return statusOf(ARGV[1])
