-- How the points of a consistent hash get onto its ring: each lies where its
-- part of the circle is in the array, or, where others lie already, as little
-- behind that as the order allows. It is counted how many belong at each place,
-- so each is written once; the few that share a place are put in order as they
-- come. No loop has a branch that data decides, but for what is rare: the
-- compiler and the processor would guess it wrong.

local bit = require "bit"
local ffi = require "ffi"

local arshift = bit.arshift
local band = bit.band
local bor = bit.bor
local max = math.max
local tobit = bit.tobit
local zero = ffi.fill


local FIRST = 2         -- place: the two before are no gaps, and end loops
local END = 2 ^ 31 - 1  -- behind all points
local GAP = 32768       -- the mark of a gap, added to its owner

local longs = ffi.typeof("int32_t[?]")

-- How many points belong at each place, and then where the next of them goes.
-- Memory is kept: fresh pages would cost more than the counting.
local heads, room = longs(0), 0


local _M = {
    FIRST = FIRST,
    END = END,
    GAP = GAP,
}


-- home returns the place where a point belongs. It is rounded as in the search
-- of resty.spinguard.ring, since both must agree.
local function home(point, scale)
    return tobit(point * scale + (FIRST - 0.5))
end


-- count counts the points that belong at each place.
local function count(point, size, places, scale)
    if room <= places then
        heads, room = longs(places + 1), places + 1
    else
        zero(heads, 4 * (places + 1))
    end

    for i = 0, size - 1 do
        local at = home(point[i], scale)
        heads[at] = heads[at] + 1
    end
end


-- plan finds out where the points of a list would lie, and returns the place
-- behind the last. It holds until the next one.
function _M.plan(list, size, places, scale)
    local at = FIRST

    count(list.point, size, places, scale)

    for place = FIRST, places do
        local n = heads[place]
        at = max(at, place)
        heads[place] = at
        at = at + n
    end

    return at
end


-- sink moves the last of the points that belong at one place to where it
-- belongs among them. Equal points go by the addresses, whatever the numbers
-- are: so all workers agree.
local function sink(point, owner, at, ids)
    local its, who = point[at], owner[at]

    while point[at - 1] > its or (point[at - 1] == its
          and ids[owner[at - 1]] > ids[who]) do
        point[at], owner[at] = point[at - 1], owner[at - 1]
        at = at - 1
    end

    point[at], owner[at] = its, who
end


-- lay writes the points of a list to where they were planned, in order.
local function lay(ring, list, size)
    local from, from_owner = list.point, list.owner
    local point, owner, scale = ring.point, ring.owner, ring.scale

    for i = 0, size - 1 do
        local its, who = from[i], from_owner[i]
        local place = home(its, scale)
        local at = heads[place]
        local left, its_owner = point[at - 1], owner[at - 1]

        heads[place] = at + 1

        -- What is left of it, if it belongs there too, is in order. So it goes
        -- there, or changes places with the last; the sign of a difference is
        -- a mask.
        local swap = arshift(its - left, 31)
        local by, other = band(left - its, swap), band(its_owner - who, swap)

        point[at], owner[at] = its + by, who + other

        if left == its or point[at - 2] >= its then
            point[at], owner[at] = its, who
            sink(point, owner, at, ring.ids)
        else
            point[at - 1], owner[at - 1] = left - by, its_owner - other
        end
    end
end


-- close makes all that is free a gap: with the point and the owner of the place
-- behind it, and a mark.
local function close(ring, last)
    local point, owner = ring.point, ring.owner

    for i = last, ring.stop + 3 do
        point[i], owner[i] = END, GAP
    end

    local its, mark = END, GAP

    for i = last - 1, FIRST, -1 do
        local who = owner[i]
        local free = arshift(who - 1, 31)

        its = point[i] + band(its, free)
        mark = bor(who, band(bor(mark, GAP), free))
        point[i], owner[i] = its, mark
    end
end


-- out spreads a list out as planned, on a ring that is zeroed.
function _M.out(ring, list, size, last)
    lay(ring, list, size)
    close(ring, last)
end


_M.home = home


return _M
