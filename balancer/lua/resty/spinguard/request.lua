-- One request on its way: its tries, what became of them, and what follows
-- for the peers and for the request itself.

local balancer = require "ngx.balancer"
local blame = require "resty.spinguard.blame"
local health = require "resty.spinguard.health"
local index = require("resty.spinguard.metrics").index
local load = require "resty.spinguard.load"

local ipairs = ipairs
local ngx = ngx
local ngx_now = ngx.now
local set_more_tries = balancer.set_more_tries
local sub = string.sub
local tonumber = tonumber


local SHAPE_MAX = 128


local _M = {}


local function count(state, name, n)
    local at = index[name]
    state.row[at] = state.row[at] + (n or 1)
end


_M.count = count


-- client and shape name who asks and what for, without the query.
function _M.client(state)
    local opts = state.opts

    return opts and opts.client and opts.client() or ngx.var.remote_addr
end


function _M.shape()
    return sub(ngx.req.get_method() .. " " .. ngx.var.uri, 1, SHAPE_MAX)
end


-- new begins a request.
function _M.new(state)
    count(state, "requests_started")
    count(state, "requests_in_flight")

    if state.budget then
        state.budget:add(state.opts.retry_budget)
    end

    return { state = state, tries = {}, granted = false }
end


-- link notes whether a try opens a connection or reuses one.
local function link(state, record, now)
    local reused = state.pool:take(record, now)

    count(state, reused and "connections_reused" or "connections_opened")

    if not reused and state.new_rate then
        load.opens(record, state.new_rate, now):take(now)
    end

    return reused
end


-- try notes that a peer is about to be tried, and asks for one more try in
-- case it fails, if the budget has one.
function _M.try(request, peer)
    local state, tries = request.state, request.tries
    local record = load.of(state.loads, peer.address)

    record.inflight = record.inflight + 1
    state.carried = state.carried + 1
    tries[#tries + 1] = { address = peer.address, load = record,
                          reused = link(state, record, ngx_now()) }

    request.granted = false
    if #tries >= state.opts.tries then
        return
    end

    if state.budget:take(ngx_now()) then
        request.granted = true
        count(state, "retries_granted")
        set_more_tries(1)
    else
        count(state, "retries_denied")
    end
end


-- list takes a variable such as $upstream_status apart: one item a try.
local function list(value)
    local items = {}

    for item in (value or ""):gmatch("[^,%s]+") do
        if item ~= ":" then
            items[#items + 1] = item
        end
    end

    return items
end


local function outcome(connect, header, status, last)
    if header and header ~= "-" then
        return "success"
    end

    if last and ngx.status == 499 then
        return "aborted"
    end

    if not connect or connect == "-" then
        return "unconnected"
    end

    return status == "504" and "timeout" or "failure"
end


local function settle(request, client, now)
    local state, tries = request.state, request.tries
    local var = ngx.var
    local connect = list(var.upstream_connect_time)
    local header = list(var.upstream_header_time)
    local status = list(var.upstream_status)

    for i, try in ipairs(tries) do
        try.outcome = outcome(connect[i], header[i], status[i], i == #tries)
        try.connected = tonumber(connect[i]) or 0
        try.lately = load.lately(try.load, client, now)
        count(state, "tries_" .. try.outcome)

        try.load.inflight = try.load.inflight - 1
        state.carried = state.carried - 1

        if try.outcome == "success" then
            load.answered(try.load, client, tonumber(header[i]) or 0, now)
        end
    end
end


-- keep notes that nginx keeps the connection of the last try. A time to
-- connect tells of one that was opened although an idle one was there: the
-- peer had closed that.
local function keep(request, now)
    local state, last = request.state, request.tries[#request.tries]

    if state.pool.size == 0 then
        return
    end

    if last and last.outcome == "success" and ngx.status ~= 499
        and ngx.var.upstream_http_connection ~= "close"
    then
        state.pool:put(last.load, now)
    end

    for _, try in ipairs(request.tries) do
        if try.reused and try.connected > 0 then
            count(state, "connections_reused", -1)
            count(state, "connections_opened")
        end
    end
end


local function smooth(tries)
    return #tries == 1 and (tries[1].outcome == "success"
                            or tries[1].outcome == "aborted")
end


-- finish is called once, in the log phase.
function _M.finish(request)
    local state, now = request.state, ngx_now()
    local client = _M.client(state)

    state.logged = true
    count(state, "requests_finished")
    count(state, "requests_in_flight", -1)

    if request.granted then
        state.budget:add(1)
        count(state, "retries_granted", -1)
    end

    settle(request, client, now)
    keep(request, now)
    if smooth(request.tries) then
        return
    end

    local shape = _M.shape()
    local failures, poison = blame.judge(request.tries, client, shape)

    if poison and state.opts.poison_time > 0 then
        health.refuse(state.name, client, shape, state.opts)
    end

    for _, failure in ipairs(failures) do
        local done = health.blame(state.name, failure, state.size,
                                  state.opts, now)
        if done ~= nil then
            count(state, done and "ejections" or "ejections_capped")
        end
    end
end


return _M
