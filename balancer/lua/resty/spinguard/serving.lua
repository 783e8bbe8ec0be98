-- Which version of an upstream a worker serves: the newest one that is not in
-- quarantine, built when it is chosen; and which of its peers are out.

local bounds = require "resty.spinguard.bounds"
local change = require "resty.spinguard.change"
local choose = require "resty.spinguard.choose"
local health = require "resty.spinguard.health"
local ledger = require "resty.spinguard.ledger"
local plan = require "resty.spinguard.plan"
local store = require "resty.spinguard.store"

local ipairs = ipairs
local log = ngx.log
local type = type


local ERR = ngx.ERR
local FOREVER = 1e300
local SLOW_START = 10   -- seconds, of a version, where no option says so


local _M = { FOREVER = FOREVER }


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
function _M.turn_of(state, now)
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
function _M.refresh(state, epoch, now)
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


return _M
