-- One upstream as a worker sees it: which version it serves, and the picker
-- that was built from it. Rebuilt only when a version or the ledger changed,
-- or a quarantine ended.

local bucket = require "resty.spinguard.bucket"
local check = require "resty.spinguard.check"
local choose = require "resty.spinguard.choose"
local crumb = require "resty.spinguard.crumb"
local hash = require "resty.spinguard.hash"
local health = require "resty.spinguard.health"
local least = require "resty.spinguard.least"
local ledger = require "resty.spinguard.ledger"
local load = require "resty.spinguard.load"
local metrics = require "resty.spinguard.metrics"
local mix = require "resty.spinguard.mix"
local record = require "resty.spinguard.record"
local rotation = require "resty.spinguard.rotation"
local store = require "resty.spinguard.store"

local ipairs = ipairs
local log = ngx.log
local ngx_now = ngx.now
local pcall = pcall
local tostring = tostring
local type = type


local ERR = ngx.ERR
local WARN = ngx.WARN
local FOREVER = 1e300
local LOOKS = 64    -- look for changes at least once in so many picks
local REOPEN = 1    -- seconds between two looks at the ledger's path


local KINDS = { rotation = rotation, hash = hash, least = least }


local _M = {}


local upstreams = {}
local pickers = {}
local options = {}
local epoch = 0
local sequence = -1
local last_ledger = 0
local last_alerts = 0
local last_look = -1
local looks = 0
local reopen_at = 0
local claimed = false


-- wrap registers the picker of a user for one upstream.
function _M.wrap(name, factory, opts)
    pickers[name] = { factory = factory, opts = opts or {} }
end


-- raw says whether the weights of an upstream go to its picker as they came.
function _M.raw(name)
    return pickers[name] ~= nil and pickers[name].opts.raw == true
end


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
    metrics.claim()

    local ok, err = crumb.claim()
    if not ok then
        log(WARN, "spinguard: no crumbs in this worker: ", err)
    end
end


-- look finds out whether anything has changed since.
local function look(now)
    if not claimed then
        claim()
    end

    if now >= reopen_at or now < last_look then
        reopen_at = now + REOPEN
        ledger.reopen()
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


-- start spreads the workers over the wheel: a multiple of the golden ratio.
local function start(version)
    local n = (ngx.worker.id() or 0) + ngx.worker.pid() + version

    return n * 0.6180339887498949 % 1
end


-- plain is the rotation that never fails, also over weights that were not
-- checked: those that are no weights count as 1.
local function plain(peers, version)
    local list = {}

    for i, peer in ipairs(peers) do
        list[i] = {
            address = peer.address,
            host = peer.host,
            port = peer.port,
            weight = check.weight(peer.weight) or 1,
        }
    end

    return rotation.new(list, start(version))
end


local function nodes(peers)
    local map = {}

    for _, peer in ipairs(peers) do
        map[peer.address] = peer.weight
    end

    return map
end


local function construct(factory, peers, info)
    if type(factory) == "table" then
        return factory:new(nodes(peers))
    end

    return factory(peers, info)
end


local function plan_of(name, version)
    local plan = {
        upstream = name,
        version = version.version,
        digest = version.digest,
        peers = version.peers,
        kind = "rotation",
        by_address = {},
    }

    for _, peer in ipairs(version.peers) do
        plan.by_address[peer.address] = peer
    end

    return plan
end


-- own builds one of the library's pickers.
local function own(state, plan)
    local opts = state.opts
    local kind = opts and opts.picker or "rotation"
    local loads, estimate = state.loads, nil

    if kind == "least" then
        estimate = function(peer)
            return load.cost(load.of(loads, peer.address))
        end

    elseif kind == "hash" then
        plan.key = opts.key
        estimate = function(peer)
            return load.of(loads, peer.address).inflight
        end
    end

    plan.kind = kind
    plan.picker = KINDS[kind].new(plan.peers, start(plan.version), estimate)
    plan.fallback = plan.picker

    return plan
end


-- guarded builds the picker of a user. The crumb says so meanwhile, since it
-- may already hang here.
local function guarded(plan, user)
    plan.fallback = plain(plan.peers, plan.version)
    plan.kind = user.opts.kind or "wrapped"
    plan.key = user.opts.key

    crumb.build(plan)
    local ok, picker = pcall(construct, user.factory, plan.peers, {
        upstream = plan.upstream, version = plan.version,
        digest = plan.digest, nodes = nodes(plan.peers),
    })
    crumb.leave()

    if not ok or type(picker) ~= "table" then
        return nil, ok and "the factory returned no picker"
                    or tostring(picker)
    end

    plan.user = true
    plan.picker = picker

    return plan
end


-- build makes the picker of a version.
local function build(state, version)
    local plan = plan_of(state.name, version)
    local user = pickers[state.name]
    local row, index = state.row, metrics.index
    local err

    if user then
        plan, err = guarded(plan, user)
    else
        plan = own(state, plan)
    end

    local counter = plan and index.builds or index.build_failures
    row[counter] = row[counter] + 1

    return plan, err
end


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

    local plan, err = build(state, version)
    if not plan then
        state.broken[version.digest] = true
        log(ERR, "spinguard: upstream ", state.name, " version ",
            version.version, ": its picker could not be built: ", err)
    end

    return plan, err
end


local function announce(state, plan)
    if plan and plan ~= state.plan then
        log(ngx.NOTICE, "spinguard: upstream ", state.name,
            ": serving version ", plan.version, ", published is ",
            state.head)

    elseif not plan then
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


-- refresh chooses the newest version that is not in quarantine.
local function refresh(state, now)
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
    state.plan = chosen
    take_out(state, now)
end


local function new_state(name)
    local opts = options[name]
    local state = {
        name = name, opts = opts, epoch = -1, recheck = FOREVER,
        broken = {}, loads = {}, out = {}, carried = 0,
        row = metrics.row(store.number(name)),
    }

    if opts then
        local workers = ngx.worker.count()
        state.budget = bucket.new(opts.retry_min / workers, 10, ngx_now())
        state.bound = opts.max_inflight > 0
                      and math.ceil(opts.max_inflight / workers) or nil
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
    if state.epoch ~= epoch or now >= state.recheck then
        refresh(state, now)
    end

    return state
end


_M.current = current


-- pick returns a peer of the version that is served, or nil and the reason,
-- and the state. request is the request that the peer is for, if it is known.
function _M.pick(name, request)
    local state = request and request.state or current(name)
    local plan = state.plan
    if not plan then
        return nil, "upstream " .. name .. ": " .. state.why
    end

    local peer = choose.peer(state, plan, request)

    if not plan.proven then
        plan.proven = true
        store.proven(name, plan.version)
    end

    if not peer then
        return nil, "upstream " .. name .. ": no peer of version "
                    .. plan.version .. " can be used"
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
