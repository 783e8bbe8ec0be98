-- Seats: memory that one worker writes and all read, without locks. The
-- master maps it once and finds it again after a reload, so numbers go on and
-- the requests of the old workers still count. A seat belongs to a worker by
-- its pid; that of a dead worker is emptied, by its successor or by any other
-- worker within a second, and taken by the next one.

local ffi = require "ffi"
local sys = require "resty.spinguard.sys"

local ffi_cast = ffi.cast
local ngx_now = ngx.now


local SEATS = 256       -- seat 0 is for who has no seat of its own
local HEADER = 4096
local PAGE = 4096
local LOCK = "w:lock"
local HELD = 10         -- seconds for which a killed worker holds it; one that
                        -- has to wait for a processor must not lose it
local WAIT = 0.1        -- seconds that a worker which starts waits for it
local FREE = 0.001
local INTERVAL = 1      -- seconds between two looks for dead workers


ffi.cdef[[
struct spinguard_seats {
    double  looked;
    int32_t used;
    int32_t pids[256];
};
]]


local _M = { SEATS = SEATS, mine = 0 }


local dict
local header
local base
local seat_size = 0
local on_empty = {}


-- init maps the seats; each has size bytes. The signature names the layout:
-- another one gets other memory. Called by the master.
function _M.init(shared, signature, size)
    seat_size = math.ceil(size / PAGE) * PAGE

    local memory, err = sys.kept_memory("spinguard-seats-" .. signature,
                                        HEADER + SEATS * seat_size)
    if not memory then
        return nil, err
    end

    dict = shared
    dict:safe_set(LOCK, 0, FREE)
    header = ffi_cast("struct spinguard_seats *", memory.addr)
    base = ffi_cast("char *", memory.addr) + HEADER

    return true
end


-- at returns the memory of a seat, or nil where there is none.
function _M.at(seat)
    return base and base + seat * seat_size
end


-- used returns the highest seat that was ever taken.
function _M.used()
    return header and header.used or 0
end


-- on_empty registers what is called with the number of a seat whose worker is
-- gone.
function _M.on_empty(f)
    on_empty[#on_empty + 1] = f
end


local function empty(seat)
    for _, f in ipairs(on_empty) do
        f(seat)
    end

    header.pids[seat] = 0
end


-- gone says whether a pid is no worker of this master. A number that was
-- given to another process since is not taken for the worker.
local function gone(pid, master)
    return sys.parent_of(pid) ~= master
end


local function unlock()
    dict:safe_set(LOCK, 0, FREE)
end


-- look empties the seats of dead workers; one worker does it for all. Under
-- the lock, or it could empty the seat of a successor.
function _M.look(now)
    if not header or (now - header.looked < INTERVAL and now >= header.looked)
    then
        return
    end

    if not dict:safe_add(LOCK, 1, HELD) then
        return
    end

    header.looked = now
    local master, me = sys.parent(), sys.pid()

    for seat = 1, header.used do
        local pid = header.pids[seat]
        if pid ~= 0 and pid ~= me and gone(pid, master) then
            empty(seat)
        end
    end

    unlock()
end


local function sit(master, me)
    for seat = 1, SEATS - 1 do
        local pid = header.pids[seat]

        if pid == 0 or pid == me or gone(pid, master) then
            empty(seat)
            header.pids[seat] = me
            header.used = seat > header.used and seat or header.used
            return seat
        end
    end

    return 0
end


-- claim takes a seat, under a lock that ends by its time. The lock is a key
-- that is always there, so a full dict has room for it. It returns false where
-- the lock could not be had within so many tries: then seat 0 is shared, where
-- counts may get lost, and the caller comes again.
function _M.claim(tries)
    if not header or not ngx.worker.id() then
        return true
    end

    -- The clock of a worker that starts may be behind that of the others.
    ngx.update_time()
    local start = ngx_now()

    for _ = 1, tries do
        if dict:safe_add(LOCK, 1, HELD) then
            _M.mine = sit(sys.parent(), sys.pid())
            unlock()
            return true
        end

        ngx.update_time()
        if ngx_now() - start > WAIT then
            break
        end
    end

    return false
end


return _M
