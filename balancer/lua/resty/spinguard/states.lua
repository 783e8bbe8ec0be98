-- What nginx noted of the tries of a request: its variables
-- $upstream_connect_time, $upstream_header_time and $upstream_status, one item
-- for each try, also over redirects.

local gmatch = string.gmatch
local ngx = ngx
local tonumber = tonumber


local _M = {}


-- list takes a variable apart.
local function list(value)
    local items = {}

    for item in gmatch(value or "", "[^,%s]+") do
        if item ~= ":" then
            items[#items + 1] = item
        end
    end

    return items
end


function _M.count(value)
    return #list(value)
end


-- read is called in the log phase.
function _M.read()
    local var = ngx.var

    return {
        connect = list(var.upstream_connect_time),
        header = list(var.upstream_header_time),
        status = list(var.upstream_status),
    }
end


-- outcome of the i-th try; last says whether nothing came after it.
function _M.outcome(found, i, last)
    local header, connect = found.header[i], found.connect[i]

    if header and header ~= "-" then
        return "success"
    end

    if last and ngx.status == 499 then
        return "aborted"
    end

    -- nginx notes a status, 502 or 504, of each peer that it asked in vain.
    -- None: it had no file handle or no memory left to begin with.
    if not connect or connect == "-" then
        return found.status[i] == "-" and "local" or "unconnected"
    end

    return found.status[i] == "504" and "timeout" or "failure"
end


-- connected and latency return seconds, 0 if there is no such time.
function _M.connected(found, i)
    return tonumber(found.connect[i]) or 0
end


function _M.latency(found, i)
    return tonumber(found.header[i]) or 0
end


return _M
