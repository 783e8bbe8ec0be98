-- A consistent hash whose weights may change one by one: what has changed goes
-- into the ring when it is asked, so that many changes cost as much as one. And
-- where only one number has changed, by a few points, those lie aside at
-- first (resty.spinguard.aside), and are moved after LOOKS picks.

local aside_of = require "resty.spinguard.aside"
local hash = require "resty.spinguard.hash"
local points = require "resty.spinguard.points"

local ahead = aside_of.ahead
local jit = jit
local next_of = hash.next
local of_key = points.of_key
local pairs = pairs
local pcall = pcall


local has_new, new_tab = pcall(require, "table.new")
if not has_new then
    new_tab = function() return {} end
end


local MOVED = 4     -- and an eighth: so many changes are taken over one by one
local LOOKS = 120   -- cost as much as to move the points
local KEPT = 256    -- places, for the next change: 1.5 KB


local _M = {}


-- blank returns a picker for a list of ids, which may get longer, without any
-- weights. numbers and looks are for the owner of the list.
function _M.blank(list, room)
    return {
        list = list,
        numbers = false,
        looks = 0,
        weight = new_tab(room, 0),  -- in the ring
        ring = false,
        moved = false,      -- numbers
        value = false,      -- their new weights
        fresh = false,
        laid = false,       -- the points of one number that has moved,
        aside = false,      -- which lie here, and may be of no use any more
    }
end


-- seat gives a new number its checked weight before the first pick.
function _M.seat(self, n, weight)
    self.weight[n] = weight
end


function _M.weight_of(self, n)
    return self.value and self.value[n] or self.weight[n]
end


-- put gives a number its weight; it may be a new one, one behind the last.
function _M.put(self, n, weight)
    local old = self.weight[n] or 0
    if not self.ring then
        self.weight[n] = weight
        return
    end

    self.weight[n] = old
    self.moved, self.value = self.moved or {}, self.value or {}

    local moved, value = self.moved, self.value
    if value[n] == nil then
        moved[#moved + 1] = n
    end

    value[n] = weight

    -- Alone, and back to what the ring has.
    self.fresh = weight == old and #moved == 1
    self.laid = false

    if self.fresh then
        value[n], moved[1] = nil, nil
        self.ring.lent = false
    end
end


-- make makes the ring.
local function make(self)
    self.ring, self.fresh = hash.over(self.list, self.weight), true
end


-- settle brings a ring that there is up to date.
function _M.settle(self)
    local moved, value = self.moved, self.value
    if not moved then
        return
    end

    local few = #moved <= MOVED + #self.list / 8

    if not few or not self.ring:change(moved, value) then
        for n, weight in pairs(value) do
            self.weight[n] = weight
        end

        self.ring = hash.over(self.list, self.weight)
    end

    for i = #moved, 1, -1 do
        value[moved[i]] = nil
        moved[i] = nil
    end

    self.laid, self.fresh = false, true
    self.aside = self.aside and self.aside.ring.stop <= KEPT and self.aside
end


-- lay puts what has moved aside, if it is little.
local function lay(self)
    local n = self.moved[1]
    local aside = #self.moved == 1
                  and aside_of.new(self.ring, n, self.value[n], self.aside)

    if aside then
        self.laid, self.aside, aside.looks = true, aside, LOOKS
    end

    return aside
end


-- What is seldom done ends in loops. The compiler would follow a pick into them
-- and give up there, several times, each of which takes as long as a hundred
-- changes, or make a trace of them that no loop of picks can be part of.
jit.off(make)
jit.off(_M.settle)
jit.off(lay)


-- beside returns the number of a key where that can be told by a look beside
-- the ring. Otherwise it returns nil, and the ring is up to date.
local function beside(self, key)
    local aside = self.laid and self.aside or lay(self)

    if aside and aside.looks > 0 then
        aside.looks = aside.looks - 1

        local n = ahead(self.ring, aside, of_key(key or ""))
        if n then
            return n
        end
    end

    _M.settle(self)
end


-- next returns the number that a key belongs to, or nil if none has a weight.
function _M.next(self, key)
    if not self.fresh then
        if not self.ring then
            make(self)
        else
            local n = beside(self, key)
            if n then
                return n
            end
        end
    end

    return next_of(self.ring, key)
end


return _M
