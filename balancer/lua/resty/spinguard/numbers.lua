-- Numbers for ids, from 1 on, as few as there are ids: pickers work with
-- numbers. The way from id to number is a look at all of them, while they are
-- few or few have been asked for; then a hash table of two bytes a place.

local bit = require "bit"
local crc = require "resty.spinguard.crc"
local ffi = require "ffi"

local band = bit.band
local crc32 = crc.short
local setmetatable = setmetatable


local FEW = 16      -- ids
local LOOKS = 16    -- cost less than the table

local shorts = ffi.typeof("uint16_t[?]")


local _M = {}
local mt = { __index = _M }


-- new takes a list of ids, which then belongs to it, and how often one of them
-- was asked for. free holds the numbers that were given back, each with the one
-- that was before it.
function _M.new(ids, looks)
    return setmetatable({ ids = ids, live = #ids, free = {}, last = 0,
                          looks = looks, place = false, mask = 0 }, mt)
end


-- settle puts a number into the table. A third of the places is empty, so
-- there is an end to each search.
local function settle(self, n)
    local place, mask = self.place, self.mask
    local at = band(crc32(self.ids[n]), mask)

    while place[at] ~= 0 do
        at = band(at + 1, mask)
    end

    place[at] = n
end


-- index makes the table, with room for some more ids.
local function index(self)
    local ids, free, size = self.ids, self.free, 2 * FEW

    while size < 1.5 * #ids do
        size = 2 * size
    end

    self.place, self.mask = shorts(size), size - 1

    for n = 1, #ids do
        if not free[n] then
            settle(self, n)
        end
    end
end


-- among returns the number of an id in a list that nobody has left, or nil,
-- by a look at all. false: they are many, and it was done often before.
function _M.among(ids, id, looks)
    if #ids > FEW and looks >= LOOKS then
        return false
    end

    for n = 1, #ids do
        if ids[n] == id then
            return n
        end
    end
end


local function look(self, id)
    local ids = self.ids

    for n = 1, #ids do
        if ids[n] == id and not self.free[n] then
            return n
        end
    end
end


-- seek returns the number of an id and its place, or nil.
local function seek(self, id)
    local ids, place, mask = self.ids, self.place, self.mask
    local at = band(crc32(id), mask)
    local n = place[at]

    while n ~= 0 do
        if ids[n] == id then
            return n, at
        end

        at = band(at + 1, mask)
        n = place[at]
    end
end


-- of returns the number of an id, or nil.
function _M.of(self, id)
    if not self.place then
        self.looks = self.looks + 1

        if #self.ids <= FEW or self.looks <= LOOKS then
            return look(self, id)
        end

        index(self)
    end

    local n = seek(self, id)

    return n
end


-- spare says whether an id would be given a number that another one had.
function _M.spare(self, id)
    return self.last > 0 and self.ids[self.last] ~= id
end


-- add gives an id that has none a number.
function _M.add(self, id)
    local n = #self.ids + 1

    if self.last > 0 then
        n = self.last
        self.last, self.free[n] = self.free[n], nil
    end

    self.ids[n] = id
    self.live = self.live + 1

    if self.place and n * 1.5 > self.mask + 1 then
        index(self)
    elseif self.place then
        settle(self, n)
    end

    return n
end


-- close fills a place that gets empty: whoever is behind it moves up, unless
-- that is before its home.
local function close(self, hole)
    local ids, place, mask = self.ids, self.place, self.mask
    local at = band(hole + 1, mask)

    while place[at] ~= 0 do
        local home = band(crc32(ids[place[at]]), mask)

        if band(at - home, mask) >= band(at - hole, mask) then
            place[hole] = place[at]
            hole = at
        end

        at = band(at + 1, mask)
    end

    place[hole] = 0
end


-- drop takes the number of an id back. ids still has it, until another one is
-- given the number.
function _M.drop(self, id)
    local n = self:of(id)

    if self.place then
        local _, at = seek(self, id)
        close(self, at)
    end

    self.free[n], self.last = self.last, n
    self.live = self.live - 1
end


return _M
