-- Numbers for Prometheus from all workers: a row of doubles for each upstream
-- in each worker's seat. Each worker writes its own rows, any of them adds
-- them up. The rows of a dead worker stay and its successor goes on, and so
-- after a reload: no counter ever goes back. What a dead worker was busy with
-- is counted as lost.

local ffi = require "ffi"
local seats = require "resty.spinguard.seats"

local ffi_cast = ffi.cast
local ffi_new = ffi.new
local format = string.format


local UPSTREAMS = 64    -- the first row is for all upstreams beyond
local ROW = 32          -- doubles


-- name, help, kind if it is no counter; the index is the place in a row.
local COUNTERS = {
    { "picks", "Picks of a peer." },
    { "fallback_picks", "Picks that the plain rotation made for a wrapped "
        .. "picker that raised or found nothing." },
    { "bound_hits", "Picks that found no usable peer within their bound." },
    { "requests_started", "Requests that came to the balancer." },
    { "requests_finished", "Requests that ended." },
    { "tries_success", "Tries that ended with an answer of the peer." },
    { "tries_failure", "Tries that a peer broke off." },
    { "tries_timeout", "Tries that timed out after they were connected." },
    { "tries_unconnected", "Tries that were refused or timed out while "
        .. "connecting." },
    { "tries_aborted", "Tries that the client did not wait for." },
    { "tries_local", "Tries that the worker could not begin, for want of a "
        .. "file handle or memory." },
    { "rejected_rate", "Requests refused by admission control." },
    { "rejected_bound", "Requests refused since every peer was at its "
        .. "bound of requests or new connections." },
    { "rejected_poison", "Requests refused since the same one failed at "
        .. "peer after peer." },
    { "rejected_route", "Requests refused by a quarantine of their route." },
    { "rejected_version", "Requests refused since no version can serve." },
    { "rejected_empty", "Requests refused since the upstream was emptied "
        .. "by force." },
    { "retries_granted", "Retries that were made." },
    { "retries_denied", "Retries that the budget did not allow." },
    { "bounds_unshared", "Requests let through at a bound, since the shared "
        .. "memory was full." },
    { "ejections", "Peers taken out for failures." },
    { "ejections_capped", "Peers not taken out, since enough are." },
    { "panics", "Picks that used a peer that was out, since too many are." },
    { "builds", "Pickers built." },
    { "build_failures", "Pickers that could not be built." },
    { "connections_opened", "Tries for which nginx had to open a "
        .. "connection." },
    { "connections_reused", "Tries for which nginx had an idle "
        .. "connection." },
    { "requests_lost", "Requests that never came back: their worker "
        .. "ended." },
    { "requests_in_flight", "Requests that live workers are busy with.",
      "gauge" },
}


local _M = { index = {}, UPSTREAMS = UPSTREAMS, SIZE = UPSTREAMS * ROW * 8 }


assert(#COUNTERS < ROW)

for i, counter in ipairs(COUNTERS) do
    _M.index[counter[1]] = i
end


local rows = {}


-- signature changes with what is counted, and where.
function _M.signature()
    local names = { UPSTREAMS, ROW }

    for i, counter in ipairs(COUNTERS) do
        names[i + 2] = counter[1]
    end

    return ngx.crc32_long(table.concat(names, " "))
end


local function row_at(seat, n)
    return ffi_cast("double *", seats.at(seat)) + n * ROW
end


-- lose counts what a dead worker was busy with.
local function lose(seat)
    local lost, busy = _M.index.requests_lost, _M.index.requests_in_flight

    for n = 0, UPSTREAMS - 1 do
        local row = row_at(seat, n)
        if row[busy] > 0 then
            row[lost] = row[lost] + row[busy]
        end

        row[busy] = 0
    end
end


seats.on_empty(lose)


-- claim makes the rows of this worker's seat the ones that are written.
function _M.claim()
    rows = {}
end


-- row returns the counters of the n-th upstream in this worker.
function _M.row(n)
    if n >= UPSTREAMS then
        n = 0
    end

    if not rows[n] then
        rows[n] = seats.at(0) and row_at(seats.mine, n)
                  or ffi_new("double[?]", ROW)
    end

    return rows[n]
end


local function sum(n, counter)
    local total = 0

    for seat = 0, seats.used() do
        total = total + row_at(seat, n)[counter]
    end

    return total
end


-- total returns a counter of the n-th upstream, of all workers.
function _M.total(n, name)
    if not seats.at(0) then
        return 0
    end

    return sum(n < UPSTREAMS and n or 0, _M.index[name])
end


-- render returns the text for Prometheus; names are the upstreams by number.
function _M.render(names)
    local lines = {}

    for i, counter in ipairs(COUNTERS) do
        local kind = counter[3] or "counter"
        local name = "spinguard_balancer_" .. counter[1]
                     .. (kind == "counter" and "_total" or "")
        lines[#lines + 1] = "# HELP " .. name .. " " .. counter[2]
        lines[#lines + 1] = "# TYPE " .. name .. " " .. kind

        for n = 0, #names < UPSTREAMS and #names or UPSTREAMS - 1 do
            if seats.at(0) and (n > 0 or #names >= UPSTREAMS) then
                lines[#lines + 1] = format('%s{upstream="%s"} %.17g', name,
                                           n == 0 and "other" or names[n],
                                           sum(n, i))
            end
        end
    end

    return lines
end


return _M
