-- One upstream as a worker sees it: which version it serves, and the picker
-- that was built from it. Rebuilt only when a version or the ledger changed,
-- or a quarantine ended.

local check = require "resty.spinguard.check"
local crumb = require "resty.spinguard.crumb"
local ledger = require "resty.spinguard.ledger"
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


local _M = { counters = {} }


local upstreams = {}
local pickers = {}
local epoch = 0
local sequence = -1
local last_ledger = 0
local last_look = -1
local looks = 0
local reopen_at = 0
local claimed = false


-- count adds one to a counter of this worker.
local function count(name)
    _M.counters[name] = (_M.counters[name] or 0) + 1
end


-- wrap registers the picker of a user for one upstream.
function _M.wrap(name, factory, opts)
    pickers[name] = { factory = factory, opts = opts or {} }
end


-- raw says whether the weights of an upstream go to its picker as they came.
function _M.raw(name)
    return pickers[name] ~= nil and pickers[name].opts.raw == true
end


-- changed makes the next pick look for new versions.
function _M.changed()
    looks = LOOKS
end


local function look(now)
    if not claimed then
        claimed = true
        reopen_at = 0

        local ok, err = crumb.claim()
        if not ok then
            log(WARN, "spinguard: no crumbs in this worker: ", err)
        end
    end

    if now >= reopen_at or now < last_look then
        reopen_at = now + REOPEN
        ledger.reopen()
    end

    ledger.poll()
    last_look, looks = now, 0

    local current = store.sequence()
    if current ~= sequence or ledger.epoch ~= last_ledger then
        sequence, last_ledger = current, ledger.epoch
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


-- build makes the picker of a version. The crumb says so meanwhile, since a
-- picker of the user may already hang here.
local function build(name, version)
    local plan = plan_of(name, version)
    local user = pickers[name]

    plan.fallback = plain(plan.peers, plan.version)
    if not user then
        plan.picker = plan.fallback
        return plan
    end

    plan.kind = user.opts.kind or "wrapped"
    plan.key = user.opts.key

    crumb.build(plan)
    local ok, picker = pcall(construct, user.factory, plan.peers, {
        upstream = name, version = plan.version, digest = plan.digest,
        nodes = nodes(plan.peers),
    })
    crumb.leave()

    if not ok or type(picker) ~= "table" then
        count("build_failed")
        return nil, ok and "the factory returned no picker"
                    or tostring(picker)
    end

    plan.user = true
    plan.picker = picker

    return plan
end


local function candidates(state)
    local newest = store.newest(state.name)
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

    local plan, err = build(state.name, version)
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
end


local function new_state(name)
    local state = { name = name, epoch = -1, recheck = FOREVER,
                    broken = {} }
    upstreams[name] = state

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


local function run_user(plan)
    local picker = plan.picker
    local ok, host, port = pcall(picker.find, picker,
                                 plan.key and plan.key())
    if not ok then
        count("pick_failed")
        log(ERR, "spinguard: upstream ", plan.upstream, " version ",
            plan.version, ": picker: ", host)
        return nil
    end

    local peer = resolve(plan, host, port)
    if not peer then
        count("pick_nothing")
    end

    return peer
end


-- pick returns a peer of the version that is served, or nil and the reason.
function _M.pick(name)
    local state = current(name)
    local plan = state.plan
    if not plan then
        return nil, "upstream " .. name .. ": " .. state.why
    end

    local peer

    crumb.pick(plan)
    if plan.user then
        peer = run_user(plan) or plan.fallback:find()
    else
        peer = plan.picker:find()
    end
    crumb.leave()

    if not plan.proven then
        plan.proven = true
        store.proven(name, plan.version)
    end

    if not peer then
        return nil, "upstream " .. name .. ": no peer of version "
                    .. plan.version .. " has a weight"
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
