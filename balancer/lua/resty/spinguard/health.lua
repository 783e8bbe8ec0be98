-- Which peers are out for their failures, and which requests are refused for
-- theirs. In the shared dict, so all workers agree; touched only when
-- something fails. Keys that do not fit are left out: then nobody is ejected.

local cjson = require("cjson.safe").new()
local mix = require "resty.spinguard.mix"

local crc32 = require("resty.spinguard.crc").long
local floor = math.floor
local log = ngx.log
local max = math.max
local min = math.min
local pairs = pairs


local WARN = ngx.WARN
local MAX_EJECTION_TIME = 300
local POISONS = 256     -- requests in quarantine of one upstream


local _M = {}


local dict


function _M.init(shared)
    dict = shared
    dict:safe_add("alerts", 0)
end


-- alerts changes with each ejection and each refused request.
function _M.alerts()
    return dict and dict:get("alerts") or 0
end


local function alert()
    dict:incr("alerts", 1)
end


-- distinct counts what has not been seen in the window, up to a limit. So a
-- single client never makes more than one of it, and the keys are bounded.
local function distinct(key, what, window, limit)
    local count = dict:get(key) or 0
    if count >= limit then
        return count
    end

    local mark = key .. ":" .. mix.hash(crc32(what))
    if not dict:safe_add(mark, true, window) then
        return count
    end

    dict:safe_add(key, 0, window)

    return dict:incr(key, 1) or count
end


-- out returns the peers that are out: address -> { stop, times, at }.
function _M.out(name)
    local data = dict:get("e:" .. name)

    return data and cjson.decode(data) or {}
end


local function alive(list, now, window)
    local count, kept = 0, {}

    for address, e in pairs(list) do
        if e.stop > now then
            count = count + 1
        end

        if max(e.stop, e.at) + window > now then
            kept[address] = e
        end
    end

    return count, kept
end


-- eject takes a peer out; longer each time it has been out within the flap
-- window. It returns false where enough peers are out, nil where it is out.
local function eject(name, address, peers, opts, now)
    local count, list = alive(_M.out(name), now, opts.flap_window)
    local old = list[address]

    if old and old.stop > now then
        return nil
    end

    if count >= max(1, floor(peers * opts.max_ejection)) then
        return false
    end

    local times = old and old.times + 1 or 1
    local length = min(opts.eject_time * 2 ^ (times - 1), MAX_EJECTION_TIME)

    list[address] = { at = now, times = times, stop = now + length }
    dict:safe_set("e:" .. name, cjson.encode(list))
    alert()
    log(WARN, "spinguard: upstream ", name, ": peer ", address,
        " is out for ", length, " s, time ", times)

    return true
end


-- blame counts a failure of a peer. Where the peer could not even be
-- connected, the request has no part in it; else distinct clients count, and
-- distinct requests too unless another peer has answered the same one.
function _M.blame(name, failure, peers, opts, now)
    local limit = opts.eject_after
    if limit == 0 then
        return nil
    end

    local key = "f:" .. name .. ":" .. failure.address
    local window = opts.eject_window
    local enough

    if failure.kind == "unconnected" then
        dict:safe_add(key .. ":u", 0, window)
        enough = (dict:incr(key .. ":u", 1) or 0) >= limit
    else
        local clients = distinct(key .. ":c", failure.client, window, limit)
        local shapes = distinct(key .. ":s", failure.shape, window, 2)
        enough = clients >= limit and (failure.compared or shapes >= 2)
    end

    if not enough then
        return nil
    end

    return eject(name, failure.address, peers, opts, now)
end


-- place is where a request in quarantine is noted. There are POISONS of them,
-- so that a client that makes up requests fills no dict: it pushes out its own.
local function place(name, request)
    return "z:" .. name .. ":" .. mix.hash(crc32(request)) % POISONS
end


-- refuse puts a request into quarantine: this client, this shape.
function _M.refuse(name, client, shape, opts)
    local request = client .. " " .. shape
    local at = place(name, request)

    if dict:get(at) == request
        or not dict:safe_set(at, request, opts.poison_time)
    then
        return
    end

    dict:safe_set("z:" .. name, true, opts.poison_time)
    alert()
    log(WARN, "spinguard: upstream ", name, ": poison request ", shape,
        " of ", client, " is refused for ", opts.poison_time, " s")
end


-- any_refused says whether any request of an upstream is in quarantine.
function _M.any_refused(name)
    return dict:get("z:" .. name) ~= nil
end


-- refused says whether a request is in quarantine.
function _M.refused(name, client, shape)
    local request = client .. " " .. shape

    return dict:get("z:" .. name) ~= nil
           and dict:get(place(name, request)) == request
end


return _M
