-- Requests in flight at each peer, of all workers together. Each worker counts
-- in its own seat, so nothing is left of one that is killed; a sum over the
-- seats is the whole. A seat is a small hash table with room for ENTRIES
-- peers that are busy at once.

local ffi = require "ffi"
local seats = require "resty.spinguard.seats"

local crc32 = require("resty.spinguard.crc").long
local ffi_cast = ffi.cast
local ffi_fill = ffi.fill


local ENTRIES = 2048
local PROBES = 16


ffi.cdef[[
struct spinguard_tally { double key; double count; };
]]


local _M = { SIZE = ENTRIES * 16 }


local offset = 0
local dict


local function table_of(seat)
    return ffi_cast("struct spinguard_tally *", seats.at(seat) + offset)
end


-- init tells where in a seat the tables begin.
function _M.init(shared, at)
    dict, offset = shared, at

    seats.on_empty(function(seat)
        ffi_fill(table_of(seat), _M.SIZE)
    end)
end


-- key names a peer of an upstream by 52 bits, exact in a double.
function _M.key(upstream, address)
    return crc32(upstream .. " " .. address) * 1048576
           + crc32(address .. " " .. upstream) % 1048576 + 1
end


-- entry finds a peer in a table; with make it takes a free place.
local function entry(entries, key, make)
    local free

    for i = 0, PROBES - 1 do
        local e = entries[(key + i) % ENTRIES]

        if e.key == key then
            return e
        end

        if e.count == 0 and not free then
            free = e
        end

        if e.key == 0 then
            break
        end
    end

    if make and free then
        free.key = key
        return free
    end
end


-- enter counts a request of this worker and returns a mark for leave; nil
-- where there is no room, then it is not counted.
function _M.enter(key)
    local e = seats.at(0) and entry(table_of(seats.mine), key, true)
    if not e then
        return nil
    end

    e.count = e.count + 1

    return e
end


function _M.leave(mark)
    mark.count = mark.count - 1
end


-- total returns the requests in flight of all workers. Who has entered before
-- is seen by all who call total later: the lock of the dict keeps the order
-- between the processors.
function _M.total(key)
    dict:get("t0")

    local sum = 0

    for seat = 0, seats.used() do
        local e = entry(table_of(seat), key, false)
        if e then
            sum = sum + e.count
        end
    end

    return sum
end


return _M
