-- The points of a consistent hash: made from a peer's address, sorted by
-- radix, put in and taken out. All loops are over points, digits or parts of
-- the circle; none depends on how the points lie. Points are signed 32-bit
-- numbers, which the compiler likes best.

local bit = require "bit"
local ffi = require "ffi"
local mix = require "resty.spinguard.mix"

local band = bit.band
local bxor = bit.bxor
local byte = string.byte
local crc32 = ngx.crc32_short  -- addresses are short; the value is the same
local copy = ffi.copy
local fill = ffi.fill
local lshift = bit.lshift
local rshift = bit.rshift
local sort = table.sort
local tobit = bit.tobit


local DIGITS = 2048       -- of eleven bits: three make a point
local MASK = DIGITS - 1
local FEW = 2048          -- points that are sorted by four smaller digits
local GOLDEN = 0x9e3779b9
local LOWEST = tobit(0x80000000)

local longs = ffi.typeof("int32_t[?]")
local shorts = ffi.typeof("uint16_t[?]")
local counts = longs(DIGITS)


local _M = {}


-- new makes room for points and the numbers of their owners.
local function new(size)
    return { points = longs(size + 1), owner = shorts(size + 1), room = size }
end


-- Memory to sort in is kept: fresh pages would cost more than the sorting.
local scratch, other, third = new(0), new(0), new(0)


-- begin makes room for so many points.
function _M.begin(size)
    if scratch.room < size then
        scratch, other, third = new(size), new(size), new(size)
    end
end


-- second is another hash of an address, for addresses with the same CRC.
local function second(address)
    local x = 0

    for i = 1, #address do
        x = tobit(x * 31 + byte(address, i))
    end

    return x
end


-- add writes some points of a peer behind those that are there, a shift
-- register and a sum mixed, and returns how many there then are. Which points
-- they are depends on the address only: a peer that gains weight gains points
-- and keeps those that it has.
function _M.add(at, address, n, from, to)
    local points, owner = scratch.points, scratch.owner
    local x, sum = tobit(mix.hash(crc32(address) + 1)), second(address)
    at = at - from

    for i = 0, to - 1 do
        x = bxor(x, lshift(x, 13))
        x = bxor(x, rshift(x, 17))
        x = bxor(x, lshift(x, 5))
        sum = tobit(sum + GOLDEN)

        if i >= from then
            points[at + i], owner[at + i] = tobit(x + sum), n
        end
    end

    return at + to
end


local function by_digit(from, to, size, shift, mask)
    local points, owner = from.points, from.owner
    local to_points, to_owner = to.points, to.owner

    fill(counts, 4 * mask + 4)

    for i = 0, size - 1 do
        local digit = band(rshift(bxor(points[i], LOWEST), shift), mask)
        counts[digit] = counts[digit] + 1
    end

    local sum = 0
    for digit = 0, mask do
        local n = counts[digit]
        counts[digit] = sum
        sum = sum + n
    end

    for i = 0, size - 1 do
        local digit = band(rshift(bxor(points[i], LOWEST), shift), mask)
        local at = counts[digit]
        counts[digit] = at + 1
        to_points[at], to_owner[at] = points[i], owner[i]
    end
end


-- by_address puts the owners of a run of equal points in order.
local function by_address(owner, from, to, ids)
    local run = {}

    for i = from, to - 1 do
        run[i - from + 1] = owner[i]
    end

    sort(run, function(a, b) return ids[a] < ids[b] end)

    for i = from, to - 1 do
        owner[i] = run[i - from + 1]
    end
end


-- settle has equal points go by the addresses, whatever the numbers are: so
-- all workers agree.
local function settle(ring, size, ids)
    local points, owner, from = ring.points, ring.owner, 0

    for i = 1, size do
        if i == size or points[i] ~= points[from] then
            if i - from > 1 then
                by_address(owner, from, i, ids)
            end

            from = i
        end
    end
end


-- sort returns the points that were added since begin, in order; for a while
-- in memory that is used again.
function _M.sort(size, ids, for_a_while)
    local to = for_a_while and third or new(size)

    if size < FEW then
        by_digit(scratch, other, size, 0, 255)
        by_digit(other, scratch, size, 8, 255)
        by_digit(scratch, other, size, 16, 255)
        by_digit(other, to, size, 24, 255)
    else
        by_digit(scratch, other, size, 0, MASK)
        by_digit(other, scratch, size, 11, MASK)
        by_digit(scratch, to, size, 22, MASK)
    end

    settle(to, size, ids)

    return to
end


-- position returns the first point of a ring in force, from one on, that is
-- not before a point of a peer.
local function position(self, from, point, id)
    local points, owner, ids = self.points, self.owner, self.ids
    local at = self.first[rshift(bxor(point, LOWEST), self.shift)]
    at = at > from and at or from

    while at < self.total and (points[at] < point or (points[at] == point
                               and ids[owner[at]] < id)) do
        at = at + 1
    end

    return at
end


-- apply returns a ring in force with the points that some peers gain, and
-- without those that others lose; so many there will be. The room of an old
-- ring is used if it is large enough.
function _M.apply(self, changed, n, gains, size, old)
    local out = old and old.room >= size and old or new(size + size / 8)
    local points, owner = out.points, out.owner
    local old_points, old_owner = self.points, self.owner
    local from, at = 0, 0

    for k = 0, n - 1 do
        local point, who = changed.points[k], changed.owner[k]
        local length = position(self, from, point, self.ids[who]) - from

        copy(points + at, old_points + from, 4 * length)
        copy(owner + at, old_owner + from, 2 * length)
        from, at = from + length, at + length

        if gains[who] then
            points[at], owner[at] = point, who
            at = at + 1
        else
            from = from + 1
        end
    end

    copy(points + at, old_points + from, 4 * (self.total - from))
    copy(owner + at, old_owner + from, 2 * (self.total - from))

    return out
end


-- index returns where the points of each of 2^bits parts of the circle begin,
-- or would.
function _M.index(ring, size, bits)
    local parts, shift = lshift(1, bits), 32 - bits
    local points, first = ring.points, longs(parts + 1)

    fill(first, 4 * parts + 4, 0xff)
    first[parts] = size

    for i = size - 1, 0, -1 do
        first[rshift(bxor(points[i], LOWEST), shift)] = i
    end

    local next_one = size
    for part = parts - 1, 0, -1 do
        if first[part] >= 0 then
            next_one = first[part]
        end

        first[part] = next_one
    end

    return first
end


-- shift brings an index up to date with the points that came and went.
function _M.shift(first, bits, changed, n, gains)
    local parts, shift = lshift(1, bits), 32 - bits
    local points, owner = changed.points, changed.owner
    local more = longs(parts)

    for k = 0, n - 1 do
        local part = rshift(bxor(points[k], LOWEST), shift)
        more[part] = more[part] + (gains[owner[k]] and 1 or -1)
    end

    local sum = 0
    for part = 0, parts - 1 do
        sum = sum + more[part]
        first[part + 1] = first[part + 1] + sum
    end
end


return _M
