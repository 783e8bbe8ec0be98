-- The points of a consistent hash: made from a peer's address, sorted by
-- radix, merged. All loops are over points or digits; none depends on how the
-- points lie. Points are signed 32-bit numbers, which the compiler likes best.

local bit = require "bit"
local ffi = require "ffi"
local mix = require "resty.spinguard.mix"

local band = bit.band
local bxor = bit.bxor
local byte = string.byte
local crc32 = ngx.crc32_short  -- addresses are short; the value is the same
local fill = ffi.fill
local ipairs = ipairs
local lshift = bit.lshift
local rshift = bit.rshift
local tobit = bit.tobit


local DIGITS = 2048       -- of eleven bits: three make a point
local MASK = DIGITS - 1
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
local scratch, other = new(0), new(0)


-- begin returns room for so many points, until the next call.
function _M.begin(size)
    if scratch.room < size then
        scratch, other = new(size), new(size)
    end

    return scratch
end


-- marks returns an array in which some numbers up to n are marked.
function _M.marks(n, numbers)
    local marked = shorts(n + 1)

    for _, number in ipairs(numbers) do
        marked[number] = 1
    end

    return marked
end


-- second is another hash of an address, for addresses with the same CRC.
local function second(address)
    local x = 0

    for i = 1, #address do
        x = tobit(x * 31 + byte(address, i))
    end

    return x
end


-- add writes the points of a peer behind those that are there, a shift
-- register and a sum mixed, and returns how many there then are.
function _M.add(ring, at, address, n, count)
    local points, owner = ring.points, ring.owner
    local x, sum = tobit(mix.hash(crc32(address) + 1)), second(address)

    for i = at, at + count - 1 do
        x = bxor(x, lshift(x, 13))
        x = bxor(x, rshift(x, 17))
        x = bxor(x, lshift(x, 5))
        sum = tobit(sum + GOLDEN)
        points[i] = tobit(x + sum)
        owner[i] = n
    end

    return at + count
end


local function by_digit(from, to, size, shift)
    local points, owner = from.points, from.owner
    local to_points, to_owner = to.points, to.owner

    fill(counts, 4 * DIGITS)

    for i = 0, size - 1 do
        local digit = band(rshift(bxor(points[i], LOWEST), shift), MASK)
        counts[digit] = counts[digit] + 1
    end

    local sum = 0
    for digit = 0, DIGITS - 1 do
        local n = counts[digit]
        counts[digit] = sum
        sum = sum + n
    end

    for i = 0, size - 1 do
        local digit = band(rshift(bxor(points[i], LOWEST), shift), MASK)
        local at = counts[digit]
        counts[digit] = at + 1
        to_points[at], to_owner[at] = points[i], owner[i]
    end
end


-- sort returns the points that were added since begin, in order; equal ones
-- keep theirs.
function _M.sort(size)
    local sorted = new(size)

    by_digit(scratch, other, size, 0)
    by_digit(other, scratch, size, 11)
    by_digit(scratch, sorted, size, 22)

    return sorted
end


-- merge returns the points of two sorted rings but those of the marked owners
-- in the first; so many there will be. Equal points go by the addresses. The
-- room of an old ring is used if it is large enough.
function _M.merge(a, a_size, b, b_size, marked, peers, size, old)
    local out = old and old.room >= size and old or new(size + size / 8)
    local points, owner = out.points, out.owner
    local a_points, a_owner = a.points, a.owner
    local b_points, b_owner = b.points, b.owner
    local i, j, at = 0, 0, 0

    for _ = 1, a_size + b_size do
        local from_a = j >= b_size

        if not from_a and i < a_size then
            local left, right = a_points[i], b_points[j]
            from_a = left < right or (left == right
                and peers[a_owner[i]].address < peers[b_owner[j]].address)
        end

        if from_a then
            if marked[a_owner[i]] == 0 then
                points[at], owner[at] = a_points[i], a_owner[i]
                at = at + 1
            end

            i = i + 1
        else
            points[at], owner[at] = b_points[j], b_owner[j]
            at, j = at + 1, j + 1
        end
    end

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


return _M
