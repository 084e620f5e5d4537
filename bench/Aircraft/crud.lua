-- What one client does again and again: it adds an aircraft, reads, changes and deletes it, and looks at each answer. Each
-- thread of wrk has one connection and a state of Lua to itself: it is one client.
--
-- What stands before this: TAG, by which the numbers of this run begin; CLIENTS; CYCLES of each client, 0 for as many as there is time for; HOST; MARK, which is said when
-- the last client is done.

local ffi = require('ffi')

ffi.cdef [[
    typedef struct { long seconds; long nanoseconds; } moment;
    int clock_gettime(int clock, moment *now);
    void *calloc(size_t count, size_t size);
    int sem_init(void *semaphore, int shared, unsigned int value);
    int sem_post(void *semaphore);
    int sem_getvalue(void *semaphore, int *value);
]]

local MONOTONIC = 1

-- As read by done() from each thread. Times are microseconds.
latencies, errors, begun, ended, completed = {}, {}, 0, 0, 0

local threads, done_clients = {}, nil
local step, sent = 1, 0
local moment, value = ffi.new('moment'), ffi.new('int[1]')

local function now()
    ffi.C.clock_gettime(MONOTONIC, moment)
    return tonumber(moment.seconds) * 1e6 + tonumber(moment.nanoseconds) / 1e3
end

function setup(thread)
    if done_clients == nil then
        done_clients = ffi.C.calloc(1, 64)
        ffi.C.sem_init(done_clients, 0, 0)
    end
    table.insert(threads, thread)
    thread:set('client', #threads)
    thread:set('semaphore', tonumber(ffi.cast('uintptr_t', done_clients)))
end

local function name()
    return string.format('%s-%d-%d', TAG, client, completed)
end

local function fields(title)
    return string.format('"title":"%s","serial_number":"MSN %d","assembly_date":"1998-04-30"', title, client * 100000 + completed)
end

local function with_body(line, body)
    return string.format('%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s', line, HOST, #body, body)
end

local function without_body(line)
    return string.format('%s HTTP/1.1\r\nHost: %s\r\n\r\n', line, HOST)
end

local function has(title)
    return function(body)
        return body:find('"number":"' .. name() .. '"', 1, true) ~= nil and body:find(fields(title), 1, true) ~= nil
    end
end

local steps = {
    {
        name = 'POST',
        status = 201,
        request = function() return with_body('POST /aircraft', '{"number":"' .. name() .. '",' .. fields('Airbus A320') .. '}') end,
        is_right = has('Airbus A320'),
    },
    {
        name = 'GET',
        status = 200,
        request = function() return without_body('GET /aircraft/' .. name()) end,
        is_right = has('Airbus A320'),
    },
    {
        name = 'PUT',
        status = 200,
        request = function() return with_body('PUT /aircraft/' .. name(), '{' .. fields('Airbus A321neo') .. '}') end,
        is_right = has('Airbus A321neo'),
    },
    {
        name = 'DELETE',
        status = 204,
        request = function() return without_body('DELETE /aircraft/' .. name()) end,
        is_right = function(body) return body == '' end,
    },
}

local function fault(kind)
    errors[kind] = (errors[kind] or 0) + 1
end

local function finish()
    local semaphore = ffi.cast('void *', semaphore)
    ffi.C.sem_post(semaphore)
    ffi.C.sem_getvalue(semaphore, value)
    if value[0] == CLIENTS then
        io.write(MARK, '\n')
        io.flush()
    end
    wrk.thread:stop()
end

-- wrk asks for one more at its start, and for the same again when a connection was lost.
function request()
    sent = now()
    return steps[step].request()
end

function response(status, headers, body)
    ended = now()
    if begun == 0 then
        begun = sent
    end
    latencies[#latencies + 1] = ended - sent
    local this = steps[step]
    if status ~= this.status then
        fault(string.format('%s answered %d', this.name, status))
    elseif not this.is_right(body) then
        fault(this.name .. ' with a wrong body')
    end
    step = step % #steps + 1
    if step == 1 then
        completed = completed + 1
        if completed == CYCLES then
            finish()
        end
    end
end

function done(summary)
    local took, kinds, first, last, cycles = {}, {}, math.huge, 0, 0
    for _, thread in ipairs(threads) do
        for _, one in ipairs(thread:get('latencies')) do
            took[#took + 1] = one
        end
        for kind, count in pairs(thread:get('errors')) do
            kinds[kind] = (kinds[kind] or 0) + count
        end
        if thread:get('begun') > 0 then
            first = math.min(first, thread:get('begun'))
            last = math.max(last, thread:get('ended'))
        end
        cycles = cycles + thread:get('completed')
    end
    for _, kind in ipairs({ 'connect', 'read', 'write', 'timeout' }) do
        if summary.errors[kind] > 0 then
            kinds['connections: ' .. kind] = summary.errors[kind]
        end
    end
    table.sort(took)
    local function percentile(share)
        return #took > 0 and took[math.max(1, math.ceil(#took * share))] or 0
    end
    local told = {}
    for kind, count in pairs(kinds) do
        told[#told + 1] = string.format('"%s":%d', kind, count)
    end
    io.write(string.format(
        '{"cycles":%d,"requests":%d,"us":%.0f,"p50":%.0f,"p99":%.0f,"p999":%.0f,"longest":%.0f,"errors":{%s}}\n',
        cycles, #took, math.max(0, last - first), percentile(0.5), percentile(0.99), percentile(0.999), percentile(1), table.concat(told, ',')
    ))
end
