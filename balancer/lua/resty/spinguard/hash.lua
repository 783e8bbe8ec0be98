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


local function weights_of(peers)
    local sum = 0

    for _, peer in ipairs(peers) do
        sum = sum + peer.weight
    end

    return sum
end


-- put makes the ring the one in force. A part of its index has four to eight
-- points on average.
local function put(self, points, size)
    local bits = 1
    while bits < 20 and 2 ^ bits * 8 < size do
        bits = bits + 1
    end

    self.points, self.owner = points.points, points.owner
    self.ring, self.total = points, size
    self.shift = 32 - bits
    self.first = ring.index(points, size, bits)
end


-- make returns the sorted points of some peers, a list of numbers.
local function make(self, numbers)
    local peers, size, at = self.peer, 0, 0

    for _, n in ipairs(numbers) do
        self.count[n] = ceil(peers[n].weight * self.unit)
        size = size + self.count[n]
    end

    local points = ring.begin(size)
    for _, n in ipairs(numbers) do
        at = ring.add(points, at, peers[n].address, n, self.count[n])
    end

    return ring.sort(size), size
end


-- new takes peers sorted by address, as resty.spinguard.check returns them.
-- load(peer) tells how many requests the peer carries; without it loads are
-- not bounded.
function _M.new(peers, _, load)
    local weights = weights_of(peers)
    local self = { peer = peers, load = load, weights = weights,
                   unit = unit_for(weights), count = {} }
    local numbers = {}

    for n in ipairs(peers) do
        numbers[n] = n
    end

    put(self, make(self, numbers))

    return setmetatable(self, mt)
end


-- change takes over the new weights of some peers, a list of numbers, which
-- may be new ones at the end. Only their points are made anew. It returns
-- false where every peer's number of points changes: then a new ring is due.
function _M.change(self, numbers)
    local peers = self.peer
    local weights = weights_of(peers)

    if unit_for(weights) ~= self.unit then
        return false
    end

    local rest = self.total
    for _, n in ipairs(numbers) do
        rest = rest - (self.count[n] or 0)
    end

    local points, size = make(self, numbers)
    self.weights = weights
    local merged = ring.merge(self.ring, self.total, points, size,
                              ring.marks(#peers, numbers), peers,
                              rest + size, self.spare)
    self.spare = self.ring
    put(self, merged, rest + size)

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
