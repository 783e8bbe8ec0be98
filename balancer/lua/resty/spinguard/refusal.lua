-- How a request is refused: with a status, and in how many seconds it may come
-- again. In the access phase nginx takes both. In the balancer phase a stock
-- nginx makes a 502 of everything; where error_page sends that on to page(),
-- it becomes what it should have been.

local base = require "resty.core.base"
local count = require("resty.spinguard.request").count
local ffi = require "ffi"

local ceil = math.ceil
local ffi_cast = ffi.cast
local get_request = base.get_request
local ngx = ngx
local ngx_exit = ngx.exit
local start_time = ngx.req.start_time
local tonumber = tonumber


local BUSY = -3     -- NGX_BUSY: nginx's own "no live upstreams", a 502
local MAX_RETRY_AFTER = 300
local ADDRESS = ffi.typeof("uintptr_t")


-- Seconds until an upstream may be asked again that was emptied, or of which
-- every peer is at its bound.
local _M = { EMPTY = 10, FULL = 1 }


-- By address, since nginx forgets all else on the way to an error page. Those
-- that no page asks for stay: so now and then all are forgotten.
local MOST_LATE = 4096
local late, lates = {}, 0


local function address()
    return tonumber(ffi_cast(ADDRESS, get_request()))
end


local function retry_after(seconds)
    if seconds and seconds > 0 then
        ngx.header["Retry-After"] = ceil(seconds < MAX_RETRY_AFTER and seconds
                                         or MAX_RETRY_AFTER)
    end
end


-- early refuses in the access phase.
function _M.early(state, status, counter, seconds)
    count(state, counter)
    retry_after(seconds)

    return ngx_exit(status)
end


local function wait(state, counter, now)
    if counter == "rejected_version" then
        return state.recheck - now
    end

    return counter == "rejected_empty" and _M.EMPTY or _M.FULL
end


-- late refuses in the balancer phase. Only OpenResty's nginx, whose version has
-- four parts, knows a status here. Without a counter it is a failure.
function _M.late(state, counter, now)
    if not counter then
        return ngx_exit(BUSY)
    end

    count(state, counter)

    if lates >= MOST_LATE then
        late, lates = {}, 0
    end

    lates = lates + 1
    late[address()] = { start = start_time(),
                        seconds = wait(state, counter, now) }

    local patched = ngx.var.nginx_version:find("^%d+%.%d+%.%d+%.%d")

    return ngx_exit(patched and 503 or BUSY)
end


-- page answers in the place of an error page: 503 to who was refused late,
-- else what it was.
function _M.page()
    local at = address()
    local refused = late[at]

    if refused then
        late[at], lates = nil, lates - 1
    end

    if refused and refused.start == start_time() then
        retry_after(refused.seconds)
        return ngx_exit(503)
    end

    return ngx_exit(ngx.status >= 400 and ngx.status or 502)
end


return _M
