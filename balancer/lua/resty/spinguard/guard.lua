-- What can be refused before a peer is asked: in the access phase, where nginx
-- knows a status and a header.

local choose = require "resty.spinguard.choose"
local health = require "resty.spinguard.health"
local ledger = require "resty.spinguard.ledger"
local refusal = require "resty.spinguard.refusal"
local request = require "resty.spinguard.request"

local find = string.find
local gsub = string.gsub
local ngx = ngx
local refuse = refusal.early


local LOCAL = { ["127.0.0.1"] = true, ["::1"] = true, ["unix:"] = true }


local _M = {}


-- pattern returns the Lua pattern of a subject in which "*" stands for one
-- segment of a path and "**" at the end for the rest, or false. A star can't
-- match a slash, so there is nothing to backtrack over.
local function pattern(subject)
    if not find(subject, "*", 1, true) then
        return false
    end

    local text = gsub(subject, "[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0")
    local head, tails = gsub(text, "%*%*$", "")

    return "^" .. gsub(head, "%*", "[^/]*") .. (tails > 0 and "" or "$")
end


local function covers(entry, shape, uri)
    if entry.subject == shape or entry.subject == uri then
        return true
    end

    if entry.pattern == nil then
        entry.pattern = pattern(entry.subject)
    end

    return entry.pattern
           and (find(shape, entry.pattern) or find(uri, entry.pattern))
end


-- route returns the seconds for which the ledger refuses this request.
local function route(name, now)
    local shape, uri

    for _, e in ipairs(ledger.entries) do
        if e.kind == "route" and (e.upstream == name or e.upstream == "")
            and e.until_ms / 1000 > now
        then
            shape, uri = shape or request.shape(), uri or ngx.var.uri

            if covers(e, shape, uri) then
                return e.until_ms / 1000 - now
            end
        end
    end
end


-- show tells the machine itself on request what serves here.
local function show(state)
    if not ngx.var.http_x_spinguard or not LOCAL[ngx.var.remote_addr] then
        return
    end

    local plan = state.plan

    ngx.header["X-Spinguard"] = "upstream=" .. state.name .. " serving="
        .. (plan and plan.version or "none") .. " published=" .. state.head
        .. " out=" .. state.out_count
end


-- check lets a request through or ends it.
function _M.check(state, now)
    show(state)

    if not state.plan then
        return refuse(state, 503, "rejected_version", state.recheck - now)
    end

    if state.plan.empty then
        return refuse(state, 503, "rejected_empty",
                      refusal.EMPTY)
    end

    local seconds = route(state.name, now)
    if seconds then
        return refuse(state, 503, "rejected_route", seconds)
    end

    if state.poison and health.refused(state.name, request.client(state),
                                       request.shape())
    then
        return refuse(state, 503, "rejected_poison", state.opts.poison_time)
    end

    if choose.full(state, now) then
        return refuse(state, 503, "rejected_bound",
                      refusal.FULL)
    end

    if state.rate then
        local ok, wait = state.rate:take(now)
        if not ok then
            return refuse(state, 429, "rejected_rate", wait)
        end
    end
end


return _M
