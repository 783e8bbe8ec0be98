-- The ring of a consistent hash: sorted points with gaps between them. A point
-- lies where its part of the circle is in the array, or, where others lie
-- already, as little behind that as the order allows. So a search begins near
-- its end, and a point comes or goes by moving the few up to the next gap.
--
-- A gap has the point and the owner of the place behind it, and a mark. So the
-- array is sorted, and a search may end in a gap. It halves the NEAR places
-- from its beginning without a branch, which data could make the compiler and
-- the processor guess wrong; few points lie further away. Changes loop over
-- points and gaps, up to twenty in the mean.

local bit = require "bit"
local ffi = require "ffi"

local arshift = bit.arshift
local band = bit.band
local bor = bit.bor
local ceil = math.ceil
local floor = math.floor
local tobit = bit.tobit


local CIRCLE = 2 ^ 30
local WIDE = 1.2        -- places for a point
local FULL = 0.9        -- of the places, at most
local THIN = 0.3        -- and at least
local NEAR = 16         -- places that a search halves
local TAIL = NEAR + 1   -- places behind the last part, and a 64th of all
local END = 2 ^ 31 - 1  -- behind all points
local GAP = 32768       -- the mark, added to an owner
local OWNER = GAP - 1
local FIRST = 1         -- place: the one before is no gap, and ends loops

local longs = ffi.typeof("int32_t[?]")
local shorts = ffi.typeof("uint16_t[?]")


local _M = {}


-- fill gives the gaps before a place what is there. Most are alone: the first
-- is written out, since the compiler begins a trace at each loop.
local function fill(points, owner, at)
    local before = at - 1
    if owner[before] < GAP then
        return
    end

    local point, who = points[at], bor(owner[at], GAP)
    points[before], owner[before] = point, who

    while owner[before - 1] >= GAP do
        before = before - 1
        points[before], owner[before] = point, who
    end
end


-- spread lays sorted points out, and says whether there was room for all.
local function spread(self, points, size)
    local from, from_owner = points.point, points.owner
    local point, owner, scale = self.point, self.owner, self.scale
    local stop, at = self.stop, FIRST - 1

    for i = 0, size - 1 do
        local its, who = from[i], from_owner[i]
        local home = floor(its * scale) + FIRST
        local gap = who + GAP

        -- Some gaps whether there are any or not, which spares a loop nearly
        -- always: what was none is written over.
        point[at + 1], owner[at + 1] = its, gap
        point[at + 2], owner[at + 2] = its, gap
        point[at + 3], owner[at + 3] = its, gap
        point[at + 4], owner[at + 4] = its, gap

        for far = at + 5, home - 1 do
            point[far], owner[far] = its, gap
        end

        at = at < home and home or at + 1

        if at >= stop then
            return false
        end

        point[at], owner[at] = its, who
    end

    for i = at + 1, stop + 3 do
        point[i], owner[i] = END, GAP
    end

    owner[stop] = 0

    return true
end


-- new returns a ring of a list of sorted points. ids are those of the owners,
-- by number.
function _M.new(points, size, ids)
    local places = ceil(size * WIDE) + 1
    local tail = TAIL + ceil(places / 64)
    local self

    repeat
        local stop = places + tail + FIRST

        self = {
            point = longs(stop + 4),
            owner = shorts(stop + 4),
            size = size,
            places = places,
            stop = stop,
            scale = (places - 1) / CIRCLE,
            ids = ids,
        }
        tail = 2 * tail
    until spread(self, points, size)

    return self
end


-- again makes another ring of one that nobody asks any more, and says whether
-- it has room for that. If not, it is of no use.
function _M.again(self, points, size, ids)
    local places = ceil(size * WIDE) + 1

    if places + TAIL + ceil(places / 64) + FIRST > self.stop then
        return false
    end

    self.size, self.places = size, places
    self.scale, self.ids = (places - 1) / CIRCLE, ids

    return spread(self, points, size)
end


-- suits says whether a ring would be neither crowded nor deserted with so many
-- points.
function _M.suits(self, size)
    return size <= FULL * self.places and size >= THIN * self.places
end


-- far looks on from a place.
local function far(points, at, point)
    while points[at] < point do
        at = at + 1
    end

    return at
end


-- at returns the place of the first point that is not before a point, or of a
-- gap before it.
function _M.at(self, point)
    local points = self.point
    -- The place where it belongs, or the one before, where nothing can be that
    -- ends the search.
    local at = tobit(point * self.scale + (FIRST - 0.5))

    -- The sign of a difference is a mask, where the compiler would make two
    -- traces of a comparison, and begin another one at a loop.
    at = at + band(arshift(points[at + 7] - point, 31), 8)
    at = at + band(arshift(points[at + 3] - point, 31), 4)
    at = at + band(arshift(points[at + 1] - point, 31), 2)
    at = at + band(arshift(points[at] - point, 31), 1)

    local its = points[at]
    if its < point then
        at = far(points, at, point)
        its = points[at]
    end

    return its ~= END and at or _M.at(self, 1)
end


-- owner returns whose point is at a place that at or after returned.
function _M.owner(self, at)
    return band(self.owner[at], OWNER)
end


-- after returns the place of the next point, or of a gap before it.
function _M.after(self, at)
    local owner = self.owner

    while owner[at] >= GAP do
        at = at + 1
    end

    return self.point[at + 1] ~= END and at + 1 or _M.at(self, 1)
end


-- put puts a point of an owner in, or returns false if there was no room: the
-- ring is of no use then.
function _M.put(self, point, n)
    local points, owner, ids = self.point, self.owner, self.ids
    local at = floor(point * self.scale) + FIRST
    local its = points[at]

    while its < point or (its == point and ids[owner[at]] < ids[n]) do
        at = at + 1
        its = points[at]
    end

    -- Whoever is here gives way, and so do all behind it up to a gap.
    local first, who = at, owner[at]

    while who < GAP do
        its = points[at]
        points[at], owner[at] = point, n
        point, n = its, who
        at = at + 1
        who = owner[at]
    end

    points[at], owner[at] = point, n
    self.size = self.size + 1
    fill(points, owner, first)

    return at < self.stop
end


-- take takes a point of an owner out.
function _M.take(self, point, n)
    local points, owner, scale = self.point, self.owner, self.scale
    local at, stop = floor(point * scale) + FIRST, self.stop

    while points[at] < point do
        at = at + 1
    end

    while owner[at] ~= n and at < stop do
        at = at + 1
    end

    local first = at

    -- Who lies behind its home moves up.
    for i = at + 1, stop - 1 do
        local its, who = points[i], owner[i]
        if who >= GAP or its * scale + FIRST >= i then
            break
        end

        points[at], owner[at] = its, who
        at = i
    end

    points[at], owner[at] = points[at + 1], bor(owner[at + 1], GAP)
    self.size = self.size - 1
    fill(points, owner, first)
end


return _M
