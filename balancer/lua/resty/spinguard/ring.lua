-- The ring of a consistent hash: sorted points with gaps between them. A point
-- lies where its part of the circle is in the array, or, where others lie
-- already, as little behind that as the order allows. So a search begins near
-- its end, and a point comes or goes by moving the few up to the next gap.
--
-- All loops are over points and gaps. How many depends on how the points lie:
-- in the mean it is three to find one, up to twenty to put one in.

local ceil = math.ceil
local ffi = require "ffi"
local floor = math.floor


local CIRCLE = 2 ^ 30
local SMALL = 2048      -- points
local WIDE = 1.5        -- places for a point on a small ring
local CLOSE = 1.2       -- and on a large one
local FULL = 0.9        -- of the places, at most
local THIN = 0.3        -- and at least
local TAIL = 16         -- places behind the last part, and a 64th of all
local END = 2 ^ 31 - 1  -- behind all points

local longs = ffi.typeof("int32_t[?]")
local shorts = ffi.typeof("uint16_t[?]")


local _M = {}


-- spread lays sorted points out, and says whether there was room for all.
local function spread(self, points, size)
    local from, from_owner = points.point, points.owner
    local point, owner, scale = self.point, self.owner, self.scale
    local stop, at = self.stop, -1

    for i = 0, size - 1 do
        local home = floor(from[i] * scale)
        at = at < home and home or at + 1

        if at >= stop then
            return false
        end

        point[at], owner[at] = from[i], from_owner[i]
    end

    return true
end


-- new returns a ring of a list of sorted points. ids are those of the owners,
-- by number.
function _M.new(points, size, ids)
    local places = ceil(size * (size < SMALL and WIDE or CLOSE)) + 1
    local tail = TAIL + ceil(places / 64)
    local self

    repeat
        local stop = places + tail

        self = {
            point = longs(stop + 2),    -- 0 is a gap
            owner = shorts(stop + 2),
            size = size,
            places = places,
            stop = stop,
            scale = (places - 1) / CIRCLE,
            ids = ids,
        }
        self.point[stop] = END
        tail = 2 * tail
    until spread(self, points, size)

    return self
end


-- suits says whether a ring would be neither crowded nor deserted with so many
-- points.
function _M.suits(self, size)
    return size <= FULL * self.places and size >= THIN * self.places
end


-- at returns the place of the first point that is not before a point.
function _M.at(self, point)
    local points = self.point
    local at = floor(point * self.scale)

    while points[at] < point do
        at = at + 1
    end

    return at < self.stop and at or _M.at(self, 1)
end


-- after returns the place of the next point.
function _M.after(self, at)
    local points = self.point

    repeat
        at = at + 1
    until points[at] ~= 0

    return at < self.stop and at or _M.at(self, 1)
end


-- put puts a point of an owner in, or returns false if there was no room: the
-- ring is of no use then.
function _M.put(self, point, n)
    local points, owner, ids = self.point, self.owner, self.ids
    local at = floor(point * self.scale)
    local its = points[at]

    while its ~= 0 and (its < point or (its == point
                        and ids[owner[at]] < ids[n])) do
        at = at + 1
        its = points[at]
    end

    -- Whoever is here gives way, and so do all behind it up to a gap.
    while its ~= 0 do
        local who = owner[at]
        points[at], owner[at] = point, n
        point, n = its, who
        at = at + 1
        its = points[at]
    end

    points[at], owner[at] = point, n
    self.size = self.size + 1

    return at < self.stop
end


-- take takes a point of an owner out.
function _M.take(self, point, n)
    local points, owner, scale = self.point, self.owner, self.scale
    local at, stop = floor(point * scale), self.stop

    while points[at] < point do
        at = at + 1
    end

    while owner[at] ~= n and at < stop do
        at = at + 1
    end

    -- Who lies behind its home moves up.
    for i = at + 1, stop - 1 do
        local its = points[i]
        if its == 0 or its * scale >= i then
            break
        end

        points[at], owner[at] = its, owner[i]
        at = i
    end

    points[at] = 0
    self.size = self.size - 1
end


return _M
