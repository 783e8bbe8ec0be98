-- One request on its way: its tries, what became of them, and what follows
-- for the peers and for the request itself.
--
-- Requests are found by their address: ngx.ctx is lost when nginx redirects,
-- as error_page does after a failure, and just then the tries matter.

local balancer = require "ngx.balancer"
local base = require "resty.core.base"
local blame = require "resty.spinguard.blame"
local bounds = require "resty.spinguard.bounds"
local ffi = require "ffi"
local health = require "resty.spinguard.health"
local index = require("resty.spinguard.metrics").index
local load = require "resty.spinguard.load"
local states = require "resty.spinguard.states"

local ffi_cast = ffi.cast
local get_last_failure = balancer.get_last_failure
local get_request = base.get_request
local ipairs = ipairs
local is_internal = ngx.req.is_internal
local match = string.match
local ngx = ngx
local ngx_now = ngx.now
local set_more_tries = balancer.set_more_tries
local start_time = ngx.req.start_time
local sub = string.sub
local tonumber = tonumber


local SHAPE_MAX = 128
local ADDRESS = ffi.typeof("uintptr_t")


local _M = {}


local open = {}


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


-- shape is that of the request as the client sent it, also where nginx has
-- redirected it since.
function _M.shape()
    local method, uri

    if is_internal() then
        method, uri = match(ngx.var.request or "", "^(%S+) ([^?%s]*)")
        uri = uri and ngx.unescape_uri(uri)
    end

    return sub((method or ngx.req.get_method()) .. " " .. (uri or ngx.var.uri),
               1, SHAPE_MAX)
end


-- new begins a request, or a redirected one anew. offset is how many tries
-- nginx has noted before.
local function new(state, before)
    count(state, "requests_started")
    count(state, "requests_in_flight")

    if state.budget then
        state.earned = state.earned + state.opts.retry_budget
    end

    local offset = 0
    if before or is_internal() then
        offset = states.count(ngx.var.upstream_status) - 1
    end

    return { state = state, tries = {}, granted = false, before = before,
             offset = offset > 0 and offset or 0, start = start_time() }
end


local function leave(state, try)
    try.load.inflight = try.load.inflight - 1
    state.carried = state.carried - 1
    state.full_at = nil
    bounds.leave(try.mark)
end


-- over ends what was counted as on its way.
local function over(request)
    local state = request.state

    count(state, "requests_finished")
    count(state, "requests_in_flight", -1)

    for _, try in ipairs(request.tries) do
        leave(state, try)
    end
end


-- enter returns the request that nginx is busy with. One at the same address
-- that never came to log() is over: there was no log() where it ended.
function _M.enter(state)
    local at = tonumber(ffi_cast(ADDRESS, get_request()))
    local current = open[at]

    if current and current.start ~= start_time() then
        while current do
            over(current)
            current = current.before
        end
    end

    if not current or not get_last_failure() then
        current = new(state, current)
        open[at] = current
    end

    return current
end


-- may_retry says whether the budget has a retry for a request that begins
-- now. It is taken only when it is needed.
local function may_retry(state, now)
    if not state.budget then
        return true
    end

    if state.earned_at ~= now then
        state.left = state.budget:add(state.earned, now)
        state.earned, state.earned_at = 0, now
    end

    return state.left >= 1
end


-- retry takes a retry from the budget of all workers, or returns false. What
-- nginx tries again by itself, since an idle connection was closed, is free.
function _M.retry(request)
    if #request.tries == 0 or not request.granted then
        return true
    end

    local budget = request.state.budget
    if budget and not budget:take(ngx_now()) then
        count(request.state, "retries_denied")
        return false
    end

    count(request.state, "retries_granted")

    return true
end


-- try notes that a peer is about to be tried, and asks for one more try in
-- case it fails, if the budget has one.
function _M.try(request, peer)
    local state, tries, now = request.state, request.tries, ngx_now()
    local record = load.of(state.loads, peer.address)
    local connection, reused = state.pool:take(record, now)

    record.inflight = record.inflight + 1
    state.carried = state.carried + 1
    tries[#tries + 1] = { address = peer.address, load = record,
                          connection = connection, reused = reused,
                          mark = request.mark, free = not request.granted }

    request.mark = nil
    request.granted = #tries < state.opts.tries and may_retry(state, now)

    if request.granted then
        set_more_tries(1)
    end
end


local function settle(request, found, client, now)
    local state, tries = request.state, request.tries

    for i, try in ipairs(tries) do
        local at = request.offset + i

        try.outcome = states.outcome(found, at, not request.after
                                                and i == #tries)
        try.lately = load.lately(try.load, client, now)
        try.stale = tries[i + 1] ~= nil and tries[i + 1].free
        count(state, "tries_" .. try.outcome)

        -- A time to connect tells of a connection that was opened although
        -- an idle one was there: the peer had closed that.
        count(state, try.reused and states.connected(found, at) == 0
                     and "connections_reused" or "connections_opened")

        if try.outcome == "success" then
            load.answered(try.load, client, states.latency(found, at), now)
        end
    end
end


-- keep notes that nginx keeps the connection of the last try.
local function keep(request, now)
    local state, last = request.state, request.tries[#request.tries]

    if state.pool.size > 0 and last and last.outcome == "success"
        and ngx.status ~= 499
        and ngx.var.upstream_http_connection ~= "close"
    then
        state.pool:put(last.connection, now)
    end
end


-- smooth says whether nothing follows from a request.
local function smooth(tries)
    return #tries == 1 and (tries[1].outcome == "success"
                            or tries[1].outcome == "aborted")
end


local function judge(request, client, now)
    local state = request.state
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


local function finish(request, found, now)
    local state, tries = request.state, request.tries
    local client = _M.client(state)
    local last = tries[#tries]

    over(request)
    settle(request, found, client, now)

    if not request.after then
        keep(request, now)
    end

    if not smooth(tries) then
        judge(request, client, now)
    end

    if last and blame.failed(last) and not request.granted
        and #tries < state.opts.tries
    then
        count(state, "retries_denied")
    end
end


-- finish is called once, in the log phase. A request that was redirected may
-- have been to several upstreams.
function _M.finish()
    local at = tonumber(ffi_cast(ADDRESS, get_request()))
    local current = open[at]
    if not current then
        return
    end

    open[at] = nil
    local found, now = states.read(), ngx_now()

    while current do
        finish(current, found, now)

        if current.before then
            current.before.after = current
        end

        current = current.before
    end
end


return _M
