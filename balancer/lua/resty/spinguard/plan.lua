-- A plan: one version of an upstream with the picker built from it.

local cap = require "resty.spinguard.cap"
local check = require "resty.spinguard.check"
local crumb = require "resty.spinguard.crumb"
local hash = require "resty.spinguard.hash"
local least = require "resty.spinguard.least"
local load = require "resty.spinguard.load"
local index = require("resty.spinguard.metrics").index
local rotation = require "resty.spinguard.rotation"

local ipairs = ipairs
local pcall = pcall
local type = type


local GOLDEN = 0.6180339887498949
local KINDS = { rotation = rotation, hash = hash, least = least }


local _M = {}


local pickers = {}
local built = 0     -- pickers, by this worker


-- wrap registers the picker of a user for one upstream.
function _M.wrap(name, factory, opts)
    pickers[name] = { factory = factory, opts = opts or {} }
end


-- raw says whether the weights of an upstream go to its picker as they came.
function _M.raw(name)
    return pickers[name] ~= nil and pickers[name].opts.raw == true
end


-- start spreads the workers over the lap: a multiple of the golden ratio; and
-- the pickers of a worker, or an upstream that is forgotten between any two
-- requests would send them all to the same peer.
local function start(version)
    local n = (ngx.worker.id() or 0) + ngx.worker.pid() + version + built
    built = built + 1

    return n * GOLDEN % 1
end


-- plain is the rotation that never fails, also over weights that were not
-- checked: those that are no weights count as 1, and so do all if all are 0.
local function plain(peers, version)
    local list, total = {}, 0

    for i, peer in ipairs(peers) do
        list[i] = {
            address = peer.address,
            host = peer.host,
            port = peer.port,
            weight = check.weight(peer.weight) or 1,
        }
        total = total + list[i].weight
    end

    for _, peer in ipairs(total == 0 and list or {}) do
        peer.weight = 1
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


-- construct runs a factory or a module's new in a protected call; capped if
-- there is a cap, with as many instructions more as there are peers.
local function construct(factory, plan, map)
    local call, steps = pcall, plan.steps

    if steps then
        steps = steps * (#plan.peers + 1)
        cap.interpret(factory)
        call = function(...)
            return cap.call(steps, ...)
        end
    end

    local ok, picker
    if type(factory) == "table" then
        ok, picker = call(factory.new, factory, map)
    else
        ok, picker = call(factory, plan.peers, {
            upstream = plan.upstream, version = plan.version,
            digest = plan.digest, nodes = map,
        })
    end

    if ok and steps then
        cap.interpret(picker)
    end

    return ok, picker
end


local function plan_of(name, version)
    local plan = {
        upstream = name,
        version = version.version,
        digest = version.digest,
        by = version.by,
        peers = version.peers,
        empty = #version.peers == 0,
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

    plan.steps = user.opts.steps

    crumb.build(plan)
    local ok, picker = construct(user.factory, plan, nodes(plan.peers))
    crumb.leave()

    if not ok or type(picker) ~= "table" then
        return nil, ok and "the factory returned no picker"
                    or cap.text(picker)
    end

    plan.user = true
    plan.picker = picker

    return plan
end


-- build makes the plan of a version, or returns nil and why not.
function _M.build(state, version)
    local plan = plan_of(state.name, version)
    local user = pickers[state.name]
    local row = state.row
    local err

    if plan.empty then
        plan.kind = "none"
    elseif user then
        plan, err = guarded(plan, user)
    else
        plan = own(state, plan)
    end

    local counter = plan and index.builds or index.build_failures
    row[counter] = row[counter] + 1

    return plan, err
end


return _M
