-- The points that peers have on the ring of a consistent hash: made from a
-- peer's address, and sorted by radix. They are whole numbers from 1 to 2^30.

local bit = require "bit"
local crc = require "resty.spinguard.crc"
local ffi = require "ffi"
local mix = require "resty.spinguard.mix"

local band = bit.band
local bxor = bit.bxor
local byte = string.byte
local crc32 = crc.short
local fill = ffi.fill
local lshift = bit.lshift
local rshift = bit.rshift
local tobit = bit.tobit
local tostring = tostring
local type = type


local DIGITS = 2048       -- most of them, and more than few points are
local GOLDEN = 0x9e3779b9
local FACTOR = 500579     -- odd, under 2^19

local longs = ffi.typeof("int32_t[?]")
local shorts = ffi.typeof("uint16_t[?]")
local counts = longs(DIGITS)


local _M = {}


-- Memory to sort in is kept: fresh pages would cost more than the sorting.
local function list(room)
    return { point = longs(room), owner = shorts(room), room = room }
end

local one, other = list(0), list(0)


-- begin returns an empty list with room for so many points, which it lends.
function _M.begin(size)
    if one.room < size then
        one, other = list(size), list(size)
    end

    return one
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


-- by_digit sorts by some bits of the points, from a place on: as many digits
-- as the mask says, plus one.
local function by_digit(from, to, size, shift, mask)
    local from_point, from_owner = from.point, from.owner
    local to_point, to_owner = to.point, to.owner

    fill(counts, 4 * (mask + 1))

    for i = 0, size - 1 do
        local digit = band(rshift(from_point[i] - 1, shift), mask)
        counts[digit] = counts[digit] + 1
    end

    local sum = 0
    for digit = 0, mask do
        local n = counts[digit]
        counts[digit] = sum
        sum = sum + n
    end

    for i = 0, size - 1 do
        local digit = band(rshift(from_point[i] - 1, shift), mask)
        local at = counts[digit]
        counts[digit] = at + 1
        to_point[at], to_owner[at] = from_point[i], from_owner[i]
    end
end


-- sink moves the last point of a list that is sorted otherwise to its place.
-- Equal points go by the addresses.
local function sink(point, owner, at, ids)
    local its, who = point[at], owner[at]

    while at > 0 and (point[at - 1] > its or (point[at - 1] == its
                      and ids[owner[at - 1]] > ids[who])) do
        point[at], owner[at] = point[at - 1], owner[at - 1]
        at = at - 1
    end

    point[at], owner[at] = its, who
end


-- sort returns the points of the list that begin lent, in order. Equal points
-- go by the addresses, whatever the numbers are: so all workers agree. Few
-- points are nearly in order after one digit that has more values than they
-- are.
function _M.sort(size, ids)
    if size <= DIGITS then
        local bits = size <= 256 and 9 or 11
        by_digit(one, other, size, 30 - bits, lshift(1, bits) - 1)
    else
        by_digit(one, other, size, 0, 1023)
        by_digit(other, one, size, 10, 1023)
        by_digit(one, other, size, 20, 1023)
    end

    local point, owner = other.point, other.owner

    for i = 1, size - 1 do
        if point[i] <= point[i - 1] then
            sink(point, owner, i, ids)
        end
    end

    return other
end


return _M
