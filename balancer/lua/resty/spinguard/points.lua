-- The points that peers have on the ring of a consistent hash: made from a
-- peer's address. They are whole numbers from 1 to 2^30.

local bit = require "bit"
local crc = require "resty.spinguard.crc"
local ffi = require "ffi"
local mix = require "resty.spinguard.mix"

local bxor = bit.bxor
local byte = string.byte
local crc32 = crc.short
local lshift = bit.lshift
local rshift = bit.rshift
local tobit = bit.tobit
local tostring = tostring
local type = type


local GOLDEN = 0x9e3779b9
local FACTOR = 500579     -- odd, under 2^19

local longs = ffi.typeof("int32_t[?]")
local shorts = ffi.typeof("uint16_t[?]")


local _M = {}


-- Memory for them is kept: fresh pages would cost more than the points.
local function list(room)
    return { point = longs(room), owner = shorts(room), room = room }
end

local lent = list(0)


-- begin returns an empty list with room for so many points, which it lends.
function _M.begin(size)
    if lent.room < size then
        lent = list(size)
    end

    return lent
end


-- of_key returns the point of a key. A CRC is spread well already, the points
-- of the peers are mixed; one product, exact in a double, takes the structure
-- out that the CRCs of similar keys share. A key that is no string is one.
function _M.of_key(key)
    if type(key) ~= "string" then
        key = tostring(key)
    end

    return rshift(tobit(crc32(key) * FACTOR), 2) + 1
end


-- second is another hash of an address, for addresses with the same CRC.
local function second(address)
    local x = 0

    for i = 1, #address do
        x = tobit(x * 31 + byte(address, i))
    end

    return x
end


-- A shift register and a sum, mixed, make the points.
local function step(x, sum)
    x = bxor(x, lshift(x, 13))
    x = bxor(x, rshift(x, 17))

    return bxor(x, lshift(x, 5)), tobit(sum + GOLDEN)
end


-- write puts some points of a peer, from one on and before another, into a
-- list at a place, and returns what is behind it. Which points they are depends
-- on the address only: a peer that gains weight gains points and keeps those
-- that it has.
function _M.write(to, place, address, n, from, stop)
    local point, owner = to.point, to.owner
    local x, sum = tobit(mix.hash(crc32(address) + 1)), second(address)

    for _ = 1, from do
        x, sum = step(x, sum)
    end

    for at = place, place + stop - from - 1 do
        x, sum = step(x, sum)
        point[at], owner[at] = rshift(tobit(x + sum), 2) + 1, n
    end

    return place + stop - from
end


return _M
