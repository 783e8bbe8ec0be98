-- What the shared dict knows of all upstreams together: their names, each with
-- a number that it keeps, and how many updates were refused or forced.

local check = require "resty.spinguard.check"

local ipairs = ipairs


local MAX_UPSTREAMS = 10000


local _M = {}


local dict


function _M.init(shared)
    dict = shared
end


-- add puts the name of a new upstream into the list, unless it is there.
function _M.add(name)
    for i = 1, MAX_UPSTREAMS do
        local ok, err = dict:safe_add("x:" .. i, name)
        if ok then
            return true
        end

        if err ~= "exists" then
            return nil, err
        end

        if dict:get("x:" .. i) == name then
            return true
        end
    end

    return nil, "more than " .. MAX_UPSTREAMS .. " upstreams"
end


-- names returns the names of all upstreams, by their numbers.
function _M.names()
    local names = {}

    for i = 1, MAX_UPSTREAMS do
        local name = dict:get("x:" .. i)
        if not name then
            break
        end

        names[i] = name
    end

    return names
end


-- number returns the number of an upstream, 0 if it has none.
function _M.number(name)
    for i = 1, MAX_UPSTREAMS do
        local found = dict:get("x:" .. i)
        if found == name then
            return i
        end

        if not found then
            return 0
        end
    end

    return 0
end


local function count(name)
    if not dict:incr(name, 1) and dict:safe_add(name, 0) then
        dict:incr(name, 1)
    end
end


-- refused counts a refused update by its reason.
function _M.refused(reason)
    count("c:refused:" .. reason)
end


-- forced counts an update that was published by force.
function _M.forced()
    count("c:forced")
end


function _M.forces()
    return dict:get("c:forced") or 0
end


-- refusals returns how many updates were refused, by reason.
function _M.refusals()
    local counts = {}

    for _, reason in ipairs(check.REASONS) do
        local n = dict:get("c:refused:" .. reason)
        if n then
            counts[#counts + 1] = { reason, n }
        end
    end

    return counts
end


return _M
