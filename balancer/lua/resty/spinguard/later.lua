-- A consistent hash whose weights may change one by one: what has changed goes
-- into the ring when it is asked, so that many changes cost as much as one. And
-- where only one number has changed, by a few points, those lie aside at
-- first (resty.spinguard.aside), and are moved after LOOKS picks.
--
-- A picker that has something to do before or beside a pick has a find of its
-- own, which is what its user calls then. So the one of the module, which does
-- nearly all picks, has nothing seldom in it: the compiler would follow a pick
-- into that and its loops and give up, and after some tries it never again
-- compiles what picks.

local aside_of = require "resty.spinguard.aside"
local compat = require "resty.spinguard.compat"
local hash = require "resty.spinguard.hash"
local points = require "resty.spinguard.points"

local NOBODY = compat.NOBODY
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


-- find returns the id that a key belongs to, or nil and that none has a weight.
function _M.find(self, key)
    if not self.fresh then
        return self.find(self, key)  -- its own
    end

    local n = next_of(self.ring, key)
    if not n then
        return nil, NOBODY
    end

    return self.list[n]
end


-- make makes the ring.
local function make(self)
    self.ring = hash.over(self.list, self.weight)
    self.fresh, self.find = true, nil
end


-- find_beside looks at what lies aside too, as often as that pays. Like the
-- other one it may have been kept by its user, and be called when it is not its
-- turn any more.
local find_beside

function find_beside(self, key)
    if self.find ~= find_beside then
        return self:find(key)
    end

    local aside = self.aside

    if aside.looks > 0 then
        aside.looks = aside.looks - 1

        local n = ahead(self.ring, aside, of_key(key or ""))
        if n then
            return self.list[n]
        end
    end

    _M.settle(self)

    return _M.find(self, key)
end


-- lay puts what has moved aside, if it is little, and says whether it was.
local function lay(self)
    local n = self.moved[1]
    local aside = #self.moved == 1
                  and aside_of.new(self.ring, n, self.value[n], self.aside)

    if not aside then
        return false
    end

    self.aside, aside.looks = aside, LOOKS
    self.find = find_beside

    return true
end


-- find_first is for the first pick, and the first after changes.
local find_first

function find_first(self, key)
    if self.find ~= find_first then
        return self:find(key)
    end

    if not self.ring then
        make(self)
    elseif not lay(self) then
        _M.settle(self)
    end

    return self:find(key)
end


-- The compiler would follow them into loops. Those are compiled alone.
jit.off(make)
jit.off(lay)
jit.off(find_first)


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
        aside = false,      -- the points of one number that has moved
        find = find_first,  -- nil: the one of the module
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
    self.find = find_first

    if self.fresh then
        value[n], moved[1] = nil, nil
        self.find, self.ring.lent = nil, false
    end
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

    self.fresh, self.find = true, nil
    self.aside = self.aside and self.aside.ring.stop <= KEPT and self.aside
end


jit.off(_M.settle)


return _M
