-- A consistent hash whose weights may change one by one: what has changed goes
-- into the ring at the next pick, so that many changes cost as much as one.

local hash = require "resty.spinguard.hash"

local next_of = hash.next
local pairs = pairs
local setmetatable = setmetatable


local MOVED = 4     -- and an eighth: so many changes are taken over one by one


local _M = {}
local mt = { __index = _M }


-- over takes lists of ids, which may get longer, and of checked weights.
function _M.over(ids, weights)
    return setmetatable({
        ids = ids,
        ring = hash.over(ids, weights),
        weight = weights,
        moved = {},     -- numbers
        value = {},     -- their new weights
        fresh = true,
    }, mt)
end


function _M.weight_of(self, n)
    return self.value[n] or self.weight[n]
end


-- put gives a number its weight; it may be a new one, one behind the last.
function _M.put(self, n, weight)
    self.weight[n] = self.weight[n] or 0

    if self.value[n] == nil then
        self.moved[#self.moved + 1] = n
    end

    self.value[n] = weight
    self.fresh = false
end


-- settle brings the ring up to date.
function _M.settle(self)
    local moved, value = self.moved, self.value
    local few = #moved <= MOVED + #self.ids / 8

    if not few or not self.ring:change(moved, value) then
        for n, weight in pairs(value) do
            self.weight[n] = weight
        end

        self.ring = hash.over(self.ids, self.weight)
    end

    for i = #moved, 1, -1 do
        value[moved[i]] = nil
        moved[i] = nil
    end

    self.fresh = true
end


-- next returns the number that a key belongs to, or nil if none has a weight.
function _M.next(self, key)
    if not self.fresh then
        self:settle()
    end

    return next_of(self.ring, key)
end


return _M
