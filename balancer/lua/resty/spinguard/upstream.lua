-- The upstreams as a worker sees them. Each is looked at anew only when a
-- version or the ledger changed, or a quarantine ended.

local bounds = require "resty.spinguard.bounds"
local change = require "resty.spinguard.change"
local choose = require "resty.spinguard.choose"
local crumb = require "resty.spinguard.crumb"
local health = require "resty.spinguard.health"
local ledger = require "resty.spinguard.ledger"
local metrics = require "resty.spinguard.metrics"
local mix = require "resty.spinguard.mix"
local pool = require "resty.spinguard.pool"
local quota = require "resty.spinguard.quota"
local record = require "resty.spinguard.record"
local register = require "resty.spinguard.register"
local seats = require "resty.spinguard.seats"
local serving = require "resty.spinguard.serving"
local store = require "resty.spinguard.store"

local ipairs = ipairs
local log = ngx.log
local ngx_now = ngx.now


local WARN = ngx.WARN
local LOOKS = 256   -- look for changes at least once in so many picks
local REOPEN = 1    -- seconds between two looks at the ledger's path
local TRIES = 100000    -- to get a seat, in a worker that starts
local IDLE = 300    -- seconds without a request until a worker forgets
local SWEEP = 60    -- seconds between two looks for what to forget
local RETRIES = 10  -- saved up in the budget, at most


local _M = {}


local upstreams = {}
local options = {}
local epoch = 0
local sequence = -1
local last_ledger = 0
local last_alerts = 0
local last_look = -1
local looks = 0
local reopen_at = 0
local swept_at = 0
local claimed = false
local seated = false


-- configure sets the options of an upstream, checked and filled.
function _M.configure(name, opts)
    options[name] = opts
end


-- changed makes the next pick look for new versions.
function _M.changed()
    looks = LOOKS
end


local function claim()
    claimed = true
    reopen_at = 0
    choose.random = mix.generator(ngx.worker.pid() * 7919 + ngx_now() * 1000)
    seated = seats.claim(TRIES)
    metrics.claim()
    change.claim()

    local ok, err = crumb.claim()
    if not ok then
        log(WARN, "spinguard: no crumbs in this worker: ", err)
    end
end


-- sit tries again to get a seat for this worker's numbers. With it, all begins
-- anew; requests on their way keep the state that they came with.
local function sit()
    seated = seats.claim(1)

    if seated then
        metrics.claim()
        upstreams = {}
    end
end


-- look finds out whether anything has changed since.
local function look(now)
    if not claimed then
        claim()
    elseif not seated then
        sit()
    end

    if now >= reopen_at or now < last_look then
        reopen_at = now + REOPEN
        ledger.reopen()
        seats.look(now)
    end

    ledger.poll()
    last_look, looks = now, 0

    local current, alerts = store.sequence(), health.alerts()
    if current ~= sequence or alerts ~= last_alerts
        or ledger.epoch ~= last_ledger
    then
        sequence, last_alerts, last_ledger = current, alerts, ledger.epoch
        epoch = epoch + 1
    end
end


_M.look = look


-- equip gives a state what its options ask for. What is bounded is bounded
-- over all workers.
local function equip(state, opts)
    local name, row = state.name, state.row

    state.earned, state.left = 0, 0
    if opts.retry_budget < math.huge then
        state.budget = quota.new("q:" .. name, opts.retry_min, RETRIES, row)
    end

    state.bounds = bounds.new(name, opts, row, state.number)
    state.pool = pool.new(opts.keepalive, opts.keepalive_timeout,
                          opts.keepalive_requests)

    if opts.rate > 0 then
        local burst = opts.burst > 0 and opts.burst or opts.rate
        state.rate = quota.new("b:" .. name, opts.rate,
                               burst > 1 and burst or 1, row)
    end
end


local function new_state(name)
    local opts = options[name]
    local state = {
        name = name, opts = opts, epoch = -1, recheck = serving.FOREVER,
        broken = {}, loads = {}, out = {}, carried = 0, back = false,
        number = register.number(name),
    }
    state.row = metrics.row(state.number)

    if opts then
        equip(state, opts)
    end

    -- A name that nothing was published for is not remembered: its number
    -- in the list of upstreams may still come.
    if store.head(name) > 0 then
        upstreams[name] = state
    end

    return state
end


-- current returns the upstream with the version to serve now.
local function current(name)
    local now = ngx_now()
    looks = looks + 1

    if now ~= last_look or looks >= LOOKS then
        look(now)
    end

    local state = upstreams[name] or new_state(name)
    state.used_at = now
    if state.epoch ~= epoch or now >= state.recheck then
        serving.refresh(state, epoch, now)
    end

    return state
end


_M.current = current


-- sweep forgets the upstreams that have long had no request: their pickers
-- are built anew when they are wanted. So they cost a worker nothing, not even
-- in its garbage collection.
function _M.sweep(now)
    if now - swept_at < SWEEP and now >= swept_at then
        return
    end

    swept_at = now

    for name, state in pairs(upstreams) do
        if now - state.used_at > IDLE and state.carried == 0
            and not state.before
        then
            upstreams[name] = nil
        end
    end
end


-- known says whether this worker holds the picker of an upstream.
function _M.known(name)
    return upstreams[name] ~= nil
end


-- pick returns a peer of the version that is served, or nil and the reason,
-- and the counter of it. request is the request that the peer is for, if it
-- is known.
function _M.pick(state, request)
    local name = state.name
    local version = serving.turn_of(state, ngx_now())
    if not version then
        return nil, "upstream " .. name .. ": " .. state.why,
               "rejected_version"
    end

    if version.empty then
        return nil, "upstream " .. name .. ": version " .. version.version
                    .. " has no peers: it was emptied by "
                    .. (version.by or "Lua"), "rejected_empty"
    end

    local peer = choose.peer(state, version, request)

    if not version.proven then
        version.proven = true
        store.proven(name, version.version)
    end

    if not peer then
        return nil, "upstream " .. name .. ": no peer of version "
                    .. version.version .. " can be used", "rejected_bound"
    end

    return peer
end


-- versions tells everything about an upstream: for the admin handler.
function _M.versions(name)
    local state = current(name)
    local newest = store.newest(name)
    if not newest then
        return nil
    end

    local list, now = { newest }, ngx_now()
    for _, number in ipairs(newest.history) do
        local old = store.load(name, number)
        if old then
            list[#list + 1] = old
        end
    end

    for i, version in ipairs(list) do
        version.changes = record.changes(list[i + 1], version)
        version.quarantined_until = ledger.holds(name, version.version,
                                                 version.digest, now)
    end

    return {
        upstream = name,
        published = newest.version,
        serving = state.plan and state.plan.version,
        versions = list,
    }
end


return _M
