-- What can be set for one upstream, with the defaults. docs/balancer.md
-- argues for each of them.

local pairs = pairs
local tostring = tostring
local type = type


local _M = {}


local DEFAULTS = {
    picker = "rotation",    -- or hash, least
    tries = 2,              -- of one request, the first one included
    retry_budget = 0.2,     -- retries for each request ...
    retry_min = 3,          -- ... but at least this many a second
    eject_after = 3,        -- failures, of distinct clients; 0: never
    eject_time = 10,        -- seconds, doubled each time
    eject_window = 10,      -- seconds in which failures are counted
    max_ejection = 0.1,     -- share of the peers, but at least one peer
    panic = 0.5,            -- with more than this share out, use all
    flap_window = 300,      -- seconds for which earlier ejections count
    slow_start = 10,        -- seconds, after an ejection
    max_inflight = 0,       -- requests at a peer, all workers; 0: any
    max_new = 0,            -- new connections a second to a peer, all workers
    keepalive = 0,          -- N of nginx's line `keepalive N`, 0 without it
    keepalive_timeout = 60, -- seconds, as nginx's line of that name
    keepalive_requests = 1000,  -- likewise
    poison_time = 10,       -- seconds to refuse a poison request; 0: never
    rate = 0,               -- requests a second, all workers; 0: any
    burst = 0,              -- requests; 0: as many as rate
}

-- What false sets where that is not 0: no bound is not a bound of nothing.
local OFF = { tries = 1, max_ejection = 1, panic = 1, retry_budget = math.huge,
              eject_window = DEFAULTS.eject_window }

local KINDS = { rotation = true, hash = true, least = true }


local function check_number(name, value)
    if value == OFF[name] then
        return true
    end

    if type(value) ~= "number" or value ~= value or value < 0
        or value > 1e9
    then
        return nil, "option " .. name .. ": want a number from 0, not "
                    .. tostring(value)
    end

    return true
end


-- fill returns the options with the defaults filled in. false switches off
-- what a number would set or bound.
function _M.fill(opts)
    local full = {}

    for name, value in pairs(DEFAULTS) do
        full[name] = value
    end

    for name, value in pairs(opts or {}) do
        if value == false and type(DEFAULTS[name]) == "number" then
            value = OFF[name] or 0
        end

        if name == "key" or name == "client" then
            if type(value) ~= "function" then
                return nil, "option " .. name .. ": want a function"
            end

        elseif name == "picker" then
            if not KINDS[value] then
                return nil, "option picker: want rotation, hash or least"
            end

        elseif DEFAULTS[name] == nil then
            return nil, "unknown option " .. tostring(name)

        else
            local ok, err = check_number(name, value)
            if not ok then
                return nil, err
            end
        end

        full[name] = value
    end

    if full.tries < 1 or full.tries > 10 or full.tries % 1 ~= 0 then
        return nil, "option tries: want 1 to 10"
    end

    if full.eject_window == 0 then
        return nil, "option eject_window: want more than 0 seconds"
    end

    if full.picker == "hash" and not full.key then
        return nil, "option picker: hash wants a key function"
    end

    return full
end


return _M
