-- One upstream as a worker sees it: which version it serves, and the picker
-- that was built from it. Rebuilt only when a version or the ledger changed,
-- or a quarantine ended.

local bounds = require "resty.spinguard.bounds"
local change = require "resty.spinguard.change"
local choose = require "resty.spinguard.choose"
local crumb = require "resty.spinguard.crumb"
local health = require "resty.spinguard.health"
local ledger = require "resty.spinguard.ledger"
local metrics = require "resty.spinguard.metrics"
local mix = require "resty.spinguard.mix"
local plan = require "resty.spinguard.plan"
local pool = require "resty.spinguard.pool"
local quota = require "resty.spinguard.quota"
local record = require "resty.spinguard.record"
local seats = require "resty.spinguard.seats"
local store = require "resty.spinguard.store"

local ipairs = ipairs
local log = ngx.log
local ngx_now = ngx.now
local type = type


local ERR = ngx.ERR
local WARN = ngx.WARN
local FOREVER = 1e300
local LOOKS = 64    -- look for changes at least once in so many picks
local SLOW_START = 10   -- seconds, of a version, where no option says so
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


-- newest returns the newest version; it is read again only if it changed.
local function newest_of(state)
    local head = store.head(state.name)

    if not state.newest or state.newest.version ~= head then
        state.newest = store.newest(state.name)
    end

    return state.newest
end


local function candidates(state)
    local newest = newest_of(state)
    local list = { newest }

    for _, version in ipairs(newest and newest.history or {}) do
        list[#list + 1] = version
    end

    return list
end


local function usable(state, version, now)
    local stop = ledger.holds(state.name, version.version, version.digest,
                              now)
    if stop then
        if stop < state.recheck then
            state.recheck = stop
        end

        return nil, "in quarantine"
    end

    if state.plan and state.plan.version == version.version
        and state.plan.digest == version.digest
    then
        return state.plan
    end

    if state.broken[version.digest] then
        return nil, "its picker could not be built"
    end

    change.tell(state.name, version)

    local built, err = plan.build(state, version)
    if not built then
        state.broken[version.digest] = true
        log(ERR, "spinguard: upstream ", state.name, " version ",
            version.version, ": its picker could not be built: ", err)
    end

    return built, err
end


local function announce(state, chosen)
    if chosen and chosen ~= state.plan then
        log(ngx.NOTICE, "spinguard: upstream ", state.name,
            ": serving version ", chosen.version, ", published is ",
            state.head)

    elseif not chosen then
        log(ERR, "spinguard: upstream ", state.name,
            ": no version can be served: ", state.why)
    end
end


-- take_out reads which peers are out: for their failures, or by the ledger.
local function take_out(state, now)
    local out, count, opts = {}, 0, state.opts

    if opts then
        out = health.out(state.name)
        state.poison = health.any_refused(state.name)
    end

    for _, e in ipairs(ledger.entries) do
        if e.kind == "peer" and e.upstream == state.name then
            out[e.subject] = { stop = e.until_ms / 1000 }
        end
    end

    for address, e in pairs(out) do
        if state.plan and state.plan.by_address[address] and e.stop > now
        then
            count = count + 1
        end
    end

    state.size = state.plan and #state.plan.peers or 0
    state.out, state.out_count = out, count
    state.panic = count > state.size * (opts and opts.panic or 0.5)
    state.plain = not opts and next(out) == nil
end


-- admit notes that a version serves anew. One that comes back since its
-- quarantine has ended takes over bit by bit, beside the one that served
-- meanwhile. A lifted one takes over at once: a person has decided.
local function admit(state, chosen, ended, now)
    local old, before = state.plan, state.before

    if chosen ~= old then
        before = ended and old and chosen and chosen.version > old.version
                 and old or nil
        state.back_at, state.back = now, true
    end

    if before and ledger.holds(state.name, before.version, before.digest, now)
    then
        before = nil
    end

    if chosen ~= old and state.bounds then
        bounds.forget(state.bounds, old, chosen, before)
    end

    state.plan, state.before = chosen, before
end


-- turn_of returns the version whose turn it is. The first pick is that of the
-- version that came back: the first worker finds out before the others try.
local function turn_of(state, now)
    if state.back or not state.before then
        state.back = false
        return state.plan
    end

    local length = state.opts and state.opts.slow_start or SLOW_START
    local since = now - state.back_at

    if since >= length or since < 0 then
        state.before = nil
        return state.plan
    end

    return choose.starting(since / length) and state.before or state.plan
end


-- refresh chooses the newest version that is not in quarantine.
local function refresh(state, now)
    local ended = now >= state.recheck

    state.epoch = epoch
    state.recheck = FOREVER
    state.why = "none was published"
    state.head = 0

    local chosen

    for i, version in ipairs(candidates(state)) do
        if type(version) ~= "table" then
            version = store.load(state.name, version)
        end

        if i == 1 then
            state.head = version.version
        end

        if version then
            local err
            chosen, err = usable(state, version, now)
            if chosen then
                break
            end

            state.why = "version " .. version.version .. " is " .. err
        end
    end

    announce(state, chosen)
    admit(state, chosen, ended, now)
    take_out(state, now)
end


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
        name = name, opts = opts, epoch = -1, recheck = FOREVER,
        broken = {}, loads = {}, out = {}, carried = 0, back = false,
        number = store.number(name),
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
        refresh(state, now)
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
    local serving = turn_of(state, ngx_now())
    if not serving then
        return nil, "upstream " .. name .. ": " .. state.why,
               "rejected_version"
    end

    if serving.empty then
        return nil, "upstream " .. name .. ": version " .. serving.version
                    .. " has no peers: it was emptied by "
                    .. (serving.by or "Lua"), "rejected_empty"
    end

    local peer = choose.peer(state, serving, request)

    if not serving.proven then
        serving.proven = true
        store.proven(name, serving.version)
    end

    if not peer then
        return nil, "upstream " .. name .. ": no peer of version "
                    .. serving.version .. " can be used", "rejected_bound"
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
