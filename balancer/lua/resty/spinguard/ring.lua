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
local spread = require "resty.spinguard.spread"

local arshift = bit.arshift
local band = bit.band
local bor = bit.bor
local ceil = math.ceil
local home = spread.home
local max = math.max
local plan_of = spread.plan
local spread_out = spread.out
local zero = ffi.fill


local CIRCLE = 2 ^ 30
local WIDE = 1.2        -- places for a point
local FULL = 0.9        -- of the places, at most
local THIN = 0.3        -- and at least
local NEAR = 16         -- places that a search halves
local TAIL = NEAR + 1   -- places behind the last part, and a 64th of all
local END = spread.END
local GAP = spread.GAP
local FIRST = spread.FIRST
local OWNER = GAP - 1

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


-- plan returns the places, the scale and the place behind the last point of a
-- ring of so many points.
local function plan(list, size)
    local places = ceil(size * WIDE) + FIRST
    local scale = (places - FIRST) / CIRCLE

    return places, scale, plan_of(list, size, places, scale)
end


-- tail returns how many places are behind the last part of the circle.
local function tail(places)
    return TAIL + ceil(places / 64)
end


-- new returns a ring of a list of points. ids are those of the owners, by
-- number.
function _M.new(list, size, ids)
    local places, scale, last = plan(list, size)
    local stop = max(places, last) + tail(places)
    local self = {
        point = longs(stop + 4),
        owner = shorts(stop + 4),
        size = size,
        places = places,
        stop = stop,
        scale = scale,
        ids = ids,
    }

    spread_out(self, list, size, last)

    return self
end


-- again makes another ring of one that nobody asks any more, and says whether
-- it has room for that.
function _M.again(self, list, size, ids)
    local places, scale, last = plan(list, size)

    if places + tail(places) > self.stop or last > self.stop then
        return false
    end

    self.size, self.places = size, places
    self.scale, self.ids = scale, ids

    zero(self.point, 4 * (last + 1))
    zero(self.owner, 2 * (last + 1))
    spread_out(self, list, size, last)

    return true
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
    local at = home(point, self.scale)

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
    local at = home(point, self.scale)
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
    local at, stop = home(point, scale), self.stop

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
        if who >= GAP or home(its, scale) >= i then
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
