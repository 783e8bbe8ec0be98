-- Picks a peer that can be used: not out, not tried by this request, not at
-- its bound. At most ASKS questions to the picker, then a look over at most
-- SCAN peers from anywhere, then whoever the picker names.

local bounds = require "resty.spinguard.bounds"
local cap = require "resty.spinguard.cap"
local crumb = require "resty.spinguard.crumb"
local index = require("resty.spinguard.metrics").index
local load = require "resty.spinguard.load"

local log = ngx.log
local ngx_now = ngx.now
local pcall = pcall
local tostring = tostring
local type = type


local ERR = ngx.ERR
local ASKS = 8
local SCAN = 256
local SLOW_FLOOR = 0.1
local PICKS, FALLBACKS = index.picks, index.fallback_picks
local BOUND_HITS, PANICS = index.bound_hits, index.panics


local _M = {}


-- resolve turns what a picker of the user returned into a peer.
local function resolve(plan, host, port)
    if type(host) == "table" then
        host = host.address
    end

    if type(host) ~= "string" then
        return nil
    end

    return plan.by_address[host]
           or (port and plan.by_address[host .. ":" .. tostring(port)])
end


local function call(plan, picker, key)
    if plan.steps then
        return cap.call(plan.steps, picker.find, picker, key)
    end

    return pcall(picker.find, picker, key)
end


local function run_user(state, plan)
    local ok, host, port = call(plan, plan.picker, plan.key and plan.key())
    local known, peer

    -- What it returned is its own code still, if it has a metatable.
    if ok then
        known, peer = pcall(resolve, plan, host, port)
        if known and peer then
            return peer
        end
    end

    state.row[FALLBACKS] = state.row[FALLBACKS] + 1
    log(ERR, "spinguard: upstream ", plan.upstream, " version ",
        plan.version, ": picker: ",
        ok and "returned no known peer" or cap.text(host))

    return plan.fallback:find()
end


-- ask runs the picker once, between crumbs.
local function ask(state, plan)
    local peer

    crumb.pick(plan)
    if plan.user then
        peer = run_user(state, plan)
    elseif plan.key then
        peer = plan.picker:find(plan.key(), state.carried)
    else
        peer = plan.picker:find()
    end
    crumb.leave()

    return peer
end


_M.ask = ask


-- starting says whether a pick passes by what is in a slow start, part of
-- which, from 0 to 1, is over.
local function starting(part)
    return _M.random() > SLOW_FLOOR + (1 - SLOW_FLOOR) * part
end


_M.starting = starting


local function in_slow_start(out, opts, now)
    local since = now - out.stop
    if since >= opts.slow_start then
        return false
    end

    return starting(since / opts.slow_start)
end


local function tried(request, peer)
    for _, try in ipairs(request and request.tries or {}) do
        if try.address == peer.address then
            return true
        end
    end

    return false
end


-- has_room says whether a peer's bounds let a request through. One that is on
-- its way takes its place at once.
local function has_room(state, request, peer, now)
    if not state.bounds then
        return true
    end

    local record = load.of(state.loads, peer.address)
    if not request then
        return not bounds.reached(state.bounds, record, peer.address, now)
    end

    local ok
    ok, request.mark = bounds.take(state.bounds, record, peer.address, now)

    return ok
end


-- usable says whether a peer can be used now.
local function usable(state, request, peer, now)
    local out = state.out[peer.address]

    if out and not state.panic
        and (out.stop > now or in_slow_start(out, state.opts, now))
    then
        return false
    end

    return not tried(request, peer) and has_room(state, request, peer, now)
end


local function scan(state, plan, request, now)
    local peers = plan.peers
    local n = #peers
    local from = math.floor(_M.random() * n)

    for i = 1, n < SCAN and n or SCAN do
        local peer = peers[(from + i) % n + 1]
        if peer.weight ~= 0 and peer.weight ~= "0"
            and usable(state, request, peer, now)
        then
            return peer
        end
    end
end


-- peer returns a peer of the plan for a request, or nil.
function _M.peer(state, plan, request)
    local row = state.row
    row[PICKS] = row[PICKS] + 1

    local first = ask(state, plan)
    if not first or state.plain then
        return first
    end

    local now = ngx_now()
    if state.bounds then
        state.pool:expire(now)
    end

    if state.panic then
        row[PANICS] = row[PANICS] + 1
    end

    local peer = first

    for _ = 1, ASKS do
        if usable(state, request, peer, now) then
            return peer
        end

        peer = ask(state, plan) or first
    end

    peer = scan(state, plan, request, now)
    if peer then
        return peer
    end

    row[BOUND_HITS] = row[BOUND_HITS] + 1

    return has_room(state, request, first, now) and first or nil
end


-- full says whether every peer is at its bound, so that a request can be
-- refused in time. Mostly the first peer that is looked at answers; that none
-- has room is looked for once a millisecond, or once a request ended.
function _M.full(state, now)
    if not state.bounds or not state.plan then
        return false
    end

    if state.full_at ~= now then
        state.pool:expire(now)
        state.full_at = not scan(state, state.plan, nil, now) and now or nil
    end

    return state.full_at ~= nil
end


return _M
