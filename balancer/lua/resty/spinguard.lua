-- resty.spinguard: a balancer that cannot loop, cannot be wiped and cannot be
-- poisoned. See docs/balancer.md.

local admin = require "resty.spinguard.admin"
local balancer = require "ngx.balancer"
local change = require "resty.spinguard.change"
local check = require "resty.spinguard.check"
local crumb = require "resty.spinguard.crumb"
local guard = require "resty.spinguard.guard"
local health = require "resty.spinguard.health"
local layout = require "resty.spinguard.layout"
local ledger = require "resty.spinguard.ledger"
local metrics = require "resty.spinguard.metrics"
local options = require "resty.spinguard.options"
local plan = require "resty.spinguard.plan"
local quota = require "resty.spinguard.quota"
local refusal = require "resty.spinguard.refusal"
local register = require "resty.spinguard.register"
local request = require "resty.spinguard.request"
local seats = require "resty.spinguard.seats"
local store = require "resty.spinguard.store"
local tally = require "resty.spinguard.tally"
local upstream = require "resty.spinguard.upstream"
local watch = require "resty.spinguard.watch"

local error = error
local log = ngx.log
local set_current_peer = balancer.set_current_peer
local type = type


local ERR = ngx.ERR
local WARN = ngx.WARN
local MAX_BY = 64   -- bytes of the name of a publisher
local INTERVAL = 1  -- seconds between two looks of an idle worker
local DIR = "/run/spinguard/nginx"
local OPTIONS = { dict = "string", dir = "string", keep = "number",
                  min_ratio = "number", token = "string" }
local WRAP = { raw = "boolean", kind = "string", key = "function",
               steps = "number" }


local _M = { _VERSION = layout._VERSION }


local config = {}


local function check_options(opts)
    if type(opts) ~= "table" then
        error("spinguard.init: want a table of options", 3)
    end

    for name, value in pairs(opts) do
        if not OPTIONS[name] then
            error("spinguard.init: unknown option " .. tostring(name), 3)
        end

        if type(value) ~= OPTIONS[name] then
            error("spinguard.init: option " .. name .. ": want a "
                  .. OPTIONS[name], 3)
        end
    end

    if not opts.dict or not ngx.shared[opts.dict] then
        error("spinguard.init: option dict: want the name of a "
              .. "lua_shared_dict", 3)
    end
end


-- init is called once, in init_by_lua. A ledger or crumbs that cannot be had
-- are a warning: the balancer works without the agent.
function _M.init(opts)
    check_options(opts)
    config = opts

    store.keep = opts.keep or store.keep
    store.min_ratio = opts.min_ratio or store.min_ratio

    local ok, err = store.init(ngx.shared[opts.dict])
    if not ok then
        error("spinguard.init: " .. err, 2)
    end

    health.init(ngx.shared[opts.dict])

    quota.init(ngx.shared[opts.dict], ngx.now())
    tally.init(ngx.shared[opts.dict], metrics.SIZE)

    ok, err = seats.init(ngx.shared[opts.dict], metrics.signature(),
                         metrics.SIZE + tally.SIZE)
    if not ok then
        log(WARN, "spinguard: no metrics and no bounds of requests in "
            .. "flight: ", err)
    end

    ok, err = crumb.init()
    if not ok then
        log(WARN, "spinguard: no crumbs: ", err)
    end

    ok, err = change.init()
    if not ok then
        log(WARN, "spinguard: changes of versions are not told: ", err)
    end

    ok, err = ledger.init(opts.dir or DIR)
    if not ok then
        log(WARN, "spinguard: no quarantine: ", err)
    end

    return true
end


-- who returns the name of a publisher in a bounded size that any reader of JSON
-- takes.
local function who(by)
    return type(by) == "string"
           and by:sub(1, MAX_BY):gsub("[%c\128-\255]", "?") or nil
end


-- update publishes the peers of an upstream as its next version. It returns
-- the number of the version, or nil, what is wrong, and a word for it.
function _M.update(name, peers, opts)
    opts = opts or {}
    opts = { by = who(opts.by), force = opts.force,
             invalid_json = opts.invalid_json }

    local ok, err, reason = check.name(name)
    local list

    if ok then
        list, err, reason = check.peers(peers, plan.raw(name), opts.force)
    end

    if list and opts.invalid_json then
        list, err, reason = nil, "invalid JSON: " .. opts.invalid_json,
                            "json"
    end

    local version
    if list then
        version, err, reason = store.publish(name, list, opts)
    end

    if not version then
        register.refused(reason)
        log(WARN, "spinguard: update of ", tostring(name), " refused: ", err)
        return nil, err, reason
    end

    if opts.force then
        log(WARN, "spinguard: update of ", name, " forced by ",
            opts.by or "Lua", #list == 0 and ": it has no peers now" or "")
    end

    upstream.changed()

    return version, nil, reason
end


-- tick has an idle worker look too: so it knows a quarantine although the
-- ledger is damaged before its next request.
local function tick(premature)
    if not premature then
        upstream.look(ngx.now())
        upstream.sweep(ngx.now())
    end
end


-- init_worker claims the crumb slot at once, instead of at the first pick,
-- looks at the ledger once a second, and watches the files. In
-- init_worker_by_lua; optional without files.
function _M.init_worker()
    upstream.look(ngx.now())

    local ok, err = ngx.timer.every(INTERVAL, tick)
    if not ok then
        log(ERR, "spinguard: an idle worker will not look: ", err)
    end

    ok, err = watch.start(_M.update)
    if not ok then
        log(ERR, "spinguard: could not watch files: ", err)
    end
end


-- watch publishes a JSON file, now and whenever it changes. Called in
-- init_by_lua, after init; wants init_worker().
function _M.watch(path)
    if type(path) ~= "string" then
        error("spinguard.watch: want the path of a file", 2)
    end

    watch.file(path, _M.update)
end


-- version returns the number of the newest version of an upstream, or nil.
function _M.version(name)
    local version = store.head(name)

    return version > 0 and version or nil
end


-- wrap guards the picker of a user: factory(peers, info) returns an object
-- with find(), or factory is a module with new(self, nodes) as in
-- lua-resty-balancer. Called in init_by_lua.
function _M.wrap(name, factory, opts)
    local ok, err = check.name(name)
    if not ok then
        error("spinguard.wrap: " .. err, 2)
    end

    if type(factory) ~= "function"
        and not (type(factory) == "table" and factory.new)
    then
        error("spinguard.wrap: want a function or a module with new()", 2)
    end

    for option, value in pairs(opts or {}) do
        if type(value) ~= WRAP[option] then
            error("spinguard.wrap: option " .. tostring(option) .. ": want "
                  .. (WRAP[option] and "a " .. WRAP[option]
                      or "raw, kind, key or steps"), 2)
        end
    end

    plan.wrap(name, factory, opts)
end


-- pick returns the peer to use now: a table with address, host and port.
function _M.pick(name)
    return upstream.pick(upstream.current(name))
end


-- upstream sets the options of an upstream: its picker and how failures are
-- handled. Called in init_by_lua; wants guard() and log() in the location.
function _M.upstream(name, opts)
    local ok, err = check.name(name)
    local full

    if ok then
        full, err = options.fill(opts)
    end

    if not full then
        error("spinguard.upstream: " .. err, 2)
    end

    upstream.configure(name, full)
end


-- guard is called in access_by_lua: it refuses what should not reach a peer,
-- with a status and Retry-After.
function _M.guard(name)
    return guard.check(upstream.current(name), ngx.now())
end


-- The log phase is not run for a subrequest, so it is not followed.
local function next_peer(state)
    if not state.opts or ngx.is_subrequest then
        return upstream.pick(state)
    end

    local current = request.enter(state)
    if not request.retry(current) then
        return nil, "upstream " .. state.name .. ": no retry left in the budget"
    end

    local peer, err, counter = upstream.pick(state, current)
    if peer then
        request.try(current, peer)
    end

    return peer, err, counter
end


-- balance is called in balancer_by_lua.
function _M.balance(name)
    local state = upstream.current(name)
    local peer, err, counter = next_peer(state)
    if not peer then
        log(ERR, "spinguard: ", err)
        return refusal.late(state, counter, ngx.now())
    end

    local ok
    ok, err = set_current_peer(peer.host, peer.port)
    if not ok then
        log(ERR, "spinguard: could not use peer ", peer.address, ": ", err)
        return refusal.late(state)
    end
end


-- refused is a content handler for error_page 502: it says 503 of what was
-- refused in the balancer phase, and of all else what it was.
function _M.refused()
    return refusal.page()
end


-- log is called in log_by_lua, for upstreams with options.
function _M.log()
    request.finish()
end


-- admin is a content handler: see docs/balancer.md for its paths.
function _M.admin()
    return admin.handle(_M.update, config)
end


return _M
