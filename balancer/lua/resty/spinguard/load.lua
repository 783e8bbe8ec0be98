-- What this worker knows of each peer: requests in flight, mean latency, when
-- it last answered and whom. Kept by address across versions.

local exp = math.exp


local DECAY = 10    -- seconds after which a latency counts a third
local LATELY = 10   -- seconds for which an answer proves a peer alive
local MAX = 40000   -- peers remembered for an upstream


local _M = {}


-- of returns the record of a peer in a table of them.
function _M.of(all, address)
    local load = all[address]
    if load then
        return load
    end

    all.count = (all.count or 0) + 1
    if all.count > MAX then
        for old in pairs(all) do
            all[old] = nil
        end
        all.count = 1
    end

    load = { inflight = 0, ewma = 0, at = 0, client = nil, other_at = 0,
             idle = 0 }
    all[address] = load

    return load
end


-- answered notes an answer and how long it took, in seconds.
function _M.answered(load, client, latency, now)
    local old = exp(-(now - load.at) / DECAY)
    if old > 1 then
        old = 1
    end

    load.ewma = load.at == 0 and latency
                or load.ewma * old + latency * (1 - old)

    if client ~= load.client then
        load.other_at = load.at
        load.client = client
    end

    load.at = now
end


-- lately says whether the peer has just answered somebody else.
function _M.lately(load, client, now)
    local at = load.client == client and load.other_at or load.at

    return now - at < LATELY
end


-- cost is how long the peer would take for one request more.
function _M.cost(load)
    return (load.inflight + 1) * (load.ewma + 0.0001)
end


return _M
