-- Who is next of many: a tournament tree. The leaves are numbers, each with
-- the time of its next turn; every node above holds who is earlier of the two
-- below it, so the root holds who is next. When the time of one changes, only
-- the nodes on its way to the root are played again: as many steps as the
-- tree has levels, always, and without a branch that data could take.
--
-- Times are whole numbers modulo 2^32, signed. All that are in the tree must
-- be less than 2^31 apart. Of equal ones the left is first. Number 0 stands
-- for nobody.
--
-- A tree is five fields of the table of whoever owns it, one table less to
-- make: leaf, how many leaves there are; climb, the function that plays from
-- one to the root; win, who is earlier at each node; room, which numbers must
-- be under; key, the times. Behind the times is as much again, key[room + n],
-- for what the owner keeps of each number.

local bit = require "bit"
local ffi = require "ffi"

local arshift = bit.arshift
local assert = assert
local band = bit.band
local bor = bit.bor
local bxor = bit.bxor
local copy = ffi.copy
local loadstring = loadstring
local rshift = bit.rshift
local tobit = bit.tobit


local FAR = 2 ^ 31 - 1   -- later than all that take part
local FEW = 16           -- leaves that every tree has
local FEW_LEVELS = 4
local MOST_LEVELS = 16   -- numbers have two bytes

local longs = ffi.typeof("int32_t[?]")
local shorts = ffi.typeof("uint16_t[?]")


local _M = { FEW = FEW }


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


-- One node above two others.
local NODE = [[
    who, other = win[2 * AT], win[2 * AT + 1]
    mask = arshift(tobit(key[other] - key[who]), 31)
    win[AT] = bxor(who, band(bxor(who, other), mask))
]]


-- written makes a function of text: without a loop, since the compiler would
-- begin a trace at each, which costs more than what is in these.
local function written(names, text)
    return assert(loadstring([[
        local arshift, band, bxor, rshift, tobit = ...

        return function(]] .. names .. [[)
            local other, its, mask
    ]] .. text .. " end"))(arshift, band, bxor, rshift, tobit)
end


local climbs, play_few = {}, ""

for levels = FEW_LEVELS, MOST_LEVELS do
    climbs[2 ^ levels] = written("win, key, at, who, time", LEVEL:rep(levels))
end

for at = FEW - 1, 1, -1 do
    play_few = play_few .. NODE:gsub("AT", at)
end

play_few = written("win, key, who", play_few)

local play_many = written("win, key, leaf, who", "for at = leaf - 1, 1, -1 do "
                                                 .. NODE:gsub("AT", "at")
                                                 .. " end")


-- fields returns the five of a tree that has room for the numbers from 1 to
-- size, under 65,536, without any of them.
function _M.fields(size)
    local leaf = bor(size, FEW - 1)
    leaf = bor(leaf, rshift(leaf, 1))
    leaf = bor(leaf, rshift(leaf, 2))
    leaf = bor(leaf, rshift(leaf, 4))
    leaf = bor(leaf, rshift(leaf, 8)) + 1

    local room = size < FEW and FEW or size + 1

    return leaf, climbs[leaf], shorts(2 * leaf), room, longs(2 * room)
end


local function decide(self)
    if self.leaf == FEW then
        play_few(self.win, self.key)
    else
        play_many(self.win, self.key, self.leaf)
    end
end


-- play decides all nodes, when it is some time, once leaves have been set:
-- win[leaf + n] to n and key[n] to its time.
function _M.play(self, now)
    self.key[0] = tobit(now + FAR)
    decide(self)
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


-- grow makes room for a number that there is none for, and for more: as many as
-- there are leaves, or twice as many.
function _M.grow(self, n)
    local leaf, win, room, key = self.leaf, self.win, self.room, self.key
    local size = n < leaf and leaf - 1 or 2 * n - 1

    self.leaf, self.climb, self.win, self.room, self.key = _M.fields(size)
    copy(self.key, key, 4 * room)
    copy(self.key + self.room, key + room, 4 * room)
    copy(self.win + self.leaf, win + leaf, 2 * leaf)
    decide(self)
end


return _M
