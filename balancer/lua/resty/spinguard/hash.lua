-- Consistent hash with bounded loads. A ring of sorted points, some for each
-- unit of weight; a key goes to the next point behind its hash. If that peer
-- already carries more than its share by a quarter, the key goes on along the
-- ring, at most over TRIES points.
--
-- The points of a peer depend on its address and weight only: a change moves
-- no key but those that the changed peers gain or lose. Only where the total
-- weight doubles past a limit the number of points for a unit is halved.

local bit = require "bit"
local ring = require "resty.spinguard.ring"

local bxor = bit.bxor
local ceil = math.ceil
local crc32 = ngx.crc32_short  -- keys are short; the value is the same
local ipairs = ipairs
local rshift = bit.rshift
local setmetatable = setmetatable
local tobit = bit.tobit


local POINTS = 160         -- for a unit of weight, while they are few
local MAX_POINTS = 65536   -- halve until no more than this, and one a peer
local SPREAD = 1.25        -- bounded load: this much over the fair share
local TRIES = 64
local FEW = 4              -- of the points, one part may be changed in place
local FACTOR = 500579      -- odd, under 2^19
local LOWEST = bit.tobit(0x80000000)


local _M = {}
local mt = { __index = _M }


-- unit_for returns the points for a unit of weight.
local function unit_for(weights)
    local unit = POINTS

    for _ = 1, 32 do
        if weights * unit <= MAX_POINTS then
            break
        end

        unit = unit / 2
    end

    return unit
end


-- bits_for returns how many bits of a point name its part of the index. A part
-- has four to eight points on average.
local function bits_for(size)
    local bits = 1
    while bits < 20 and 2 ^ bits * 8 < size do
        bits = bits + 1
    end

    return bits
end


-- put makes the ring the one in force.
local function put(self, points, size)
    self.points, self.owner = points.points, points.owner
    self.ring, self.total = points, size
end


local function index(self)
    self.bits = bits_for(self.total)
    self.shift = 32 - self.bits
    self.first = ring.index(self.ring, self.total, self.bits)
end


-- build makes the ring anew from all weights.
local function build(self)
    local ids, size, at = self.ids, 0, 0

    for n = 1, #ids do
        self.count[n] = ceil(self.weight[n] * self.unit)
        size = size + self.count[n]
    end

    ring.begin(size)
    for n = 1, #ids do
        at = ring.add(at, ids[n], n, 0, self.count[n])
    end

    put(self, ring.sort(size, ids), size)
    index(self)
end


-- over takes lists of ids and of checked weights, which then belong to the
-- picker. Such a picker is asked for numbers, by next.
function _M.over(ids, weights)
    local self = { ids = ids, weight = weights, weights = 0, count = {} }

    for n = 1, #weights do
        self.weights = self.weights + weights[n]
    end

    self.unit = unit_for(self.weights)
    build(self)

    return setmetatable(self, mt)
end


-- new takes peers as resty.spinguard.check returns them. load(peer) tells how
-- many requests the peer carries; without it loads are not bounded.
function _M.new(peers, _, load)
    local ids, weights = {}, {}

    for n, peer in ipairs(peers) do
        ids[n], weights[n] = peer.address, peer.weight
    end

    local self = _M.over(ids, weights)
    self.peer, self.load = peers, load

    return self
end


-- difference returns how many points some numbers gain or lose with new
-- weights, and how many more there are then.
local function difference(self, numbers, weights)
    local size, more = 0, 0

    for _, n in ipairs(numbers) do
        local by = ceil(weights[n] * self.unit) - (self.count[n] or 0)
        size = size + (by > 0 and by or -by)
        more = more + by
    end

    return size, more
end


-- gather takes the weights over and returns the points that come and go,
-- sorted, and which numbers gain.
local function gather(self, numbers, weights, size)
    local count, gains, at = self.count, {}, 0

    ring.begin(size)

    for _, n in ipairs(numbers) do
        local old, new = count[n] or 0, ceil(weights[n] * self.unit)
        gains[n] = new > old
        count[n], self.weight[n] = new, weights[n]
        at = ring.add(at, self.ids[n], n, old < new and old or new,
                      old < new and new or old)
    end

    return ring.sort(size, self.ids, true), gains
end


-- change takes over the new weights of some numbers, which may be new ones at
-- the end. Only the points are touched that come and go. It returns false,
-- having changed nothing, where a new ring is due: every peer's number of
-- points changes, or so many that a new ring is cheaper.
function _M.change(self, numbers, weights)
    local sum = self.weights

    for _, n in ipairs(numbers) do
        sum = sum + weights[n] - (self.weight[n] or 0)
    end

    local size, more = difference(self, numbers, weights)
    if unit_for(sum) ~= self.unit or size * FEW > self.total then
        return false
    end

    self.weights = sum
    local points, gains = gather(self, numbers, weights, size)
    local new = ring.apply(self, points, size, gains, self.total + more,
                           self.spare)
    self.spare = self.ring
    put(self, new, self.total + more)

    if bits_for(self.total) == self.bits then
        ring.shift(self.first, self.bits, points, size, gains)
    else
        index(self)
    end

    return true
end


-- locate returns the position of the first point that is not before the
-- hash. It looks through one part of the circle.
local function locate(self, point)
    local part = rshift(bxor(point, LOWEST), self.shift)
    local at, stop = self.first[part], self.first[part + 1]
    local points = self.points

    while at < stop and points[at] < point do
        at = at + 1
    end

    return at < self.total and at or 0
end


-- point_of returns the point of a key. A CRC is spread well already, the
-- points of the peers are mixed; one product, exact in a double, takes the
-- structure out that the CRCs of similar keys share.
local function point_of(key)
    return tobit(crc32(key) * FACTOR)
end


local function over(self, peer, carried)
    local share = (carried + 1) * peer.weight / self.weights

    return self.load(peer) + 1 > ceil(share * SPREAD)
end


-- next returns the number whose point the key is at, or nil if none has a
-- weight.
function _M.next(self, key)
    if self.total == 0 then
        return nil
    end

    return self.owner[locate(self, point_of(key or ""))]
end


-- find returns the peer of a key. carried is how many requests all peers
-- carry together.
function _M.find(self, key, carried)
    if self.total == 0 then
        return nil
    end

    local at = locate(self, point_of(key or ""))
    local peer = self.peer[self.owner[at]]

    if not self.load or not carried then
        return peer
    end

    for _ = 1, TRIES do
        local next_peer = self.peer[self.owner[at]]
        if not over(self, next_peer, carried) then
            return next_peer
        end

        at = at + 1 < self.total and at + 1 or 0
    end

    return peer
end


return _M
