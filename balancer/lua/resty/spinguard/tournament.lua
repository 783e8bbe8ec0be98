-- Who is next of many: a tournament tree. The leaves are numbers, each with
-- the time of its next turn; every node above holds who is earlier of the two
-- below it, so the root holds who is next. When the time of one changes, only
-- the nodes on its way to the root are played again: as many steps as the
-- tree has levels, always, and without a branch that data could take.
--
-- Times are whole numbers modulo 2^32, signed. All that are in the tree must
-- be less than 2^31 apart. Of equal ones the left is first.

local bit = require "bit"
local ffi = require "ffi"

local arshift = bit.arshift
local assert = assert
local band = bit.band
local bxor = bit.bxor
local copy = ffi.copy
local loadstring = loadstring
local rshift = bit.rshift
local tobit = bit.tobit


local FAR = 2 ^ 31 - 1  -- later than all that take part
local MOST_LEVELS = 16  -- numbers have two bytes

local longs = ffi.typeof("int32_t[?]")
local shorts = ffi.typeof("uint16_t[?]")


local _M = {}


-- One level: whoever came up from below against the other side. The sign of
-- a difference is a mask that selects, where the compiler would otherwise
-- make two traces of each comparison.
local LEVEL = [[
    other = win[bxor(at, 1)]
    its = key[other]
    mask = arshift(tobit(its - time - band(at, 1)), 31)
    who = bxor(who, band(bxor(who, other), mask))
    time = bxor(time, band(bxor(time, its), mask))
    at = rshift(at, 1)
    win[at] = who
]]

local climbs = {}


-- climb returns the function that plays from a leaf to the root of a tree of
-- some levels. It is written out without a loop: the compiler would begin a
-- trace at each loop, which costs more than the levels do.
local function climb(levels)
    if not climbs[levels] then
        climbs[levels] = assert(loadstring([[
            local arshift, band, bxor, rshift, tobit = ...

            return function(win, key, at, who, time)
                local other, its, mask
        ]] .. LEVEL:rep(levels) .. " end"))(arshift, band, bxor, rshift, tobit)
    end

    return climbs[levels]
end


-- new returns a tree for the numbers from 1 to size, without any of them, in
-- which it is some time. Number 0 stands for nobody.
function _M.new(size, now)
    local leaf, levels = 1, 0

    for _ = 1, MOST_LEVELS do
        if leaf <= size then
            leaf, levels = 2 * leaf, levels + 1
        end
    end

    local self = {
        room = size,
        leaf = leaf,
        climb = climb(levels),
        win = shorts(2 * leaf),
        key = longs(size + 1),
    }

    self.key[0] = tobit(now + FAR)

    return self
end


-- play decides all nodes, once leaves have been set.
function _M.play(self)
    local win, key = self.win, self.key

    for at = self.leaf - 1, 1, -1 do
        local who, other = win[2 * at], win[2 * at + 1]
        local mask = arshift(tobit(key[other] - key[who]), 31)
        win[at] = bxor(who, band(bxor(who, other), mask))
    end
end


-- seed puts a number into a leaf; play must follow.
function _M.seed(self, n, time)
    self.key[n], self.win[self.leaf + n] = time, n
end


-- put gives a number, which may be a new one, the time of its next turn.
function _M.put(self, n, time)
    local at = self.leaf + n

    self.key[n], self.win[at] = time, n
    self.climb(self.win, self.key, at, n, time)
end


-- pass gives who is next now the time of its turn after that.
function _M.pass(self, n, now, time)
    local key = self.key

    key[0], key[n] = tobit(now + FAR), time
    self.climb(self.win, key, self.leaf + n, n, time)
end


-- drop takes a number out.
function _M.drop(self, n)
    local at = self.leaf + n

    self.win[at] = 0
    self.climb(self.win, self.key, at, 0, self.key[0])
end


-- grown returns the same tree with room for more numbers.
function _M.grown(self, size)
    local new = _M.new(size, 0)

    copy(new.key, self.key, 4 * (self.room + 1))
    copy(new.win + new.leaf, self.win + self.leaf, 2 * (self.room + 1))
    _M.play(new)

    return new
end


return _M
