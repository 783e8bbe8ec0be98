-- The less loaded of two. Two peers are drawn by weight, one draw each from an
-- alias table, and the one whose queue would take less time is picked: its
-- requests in flight times its mean latency.

local setmetatable = setmetatable
local floor = math.floor
local ipairs = ipairs
local mix = require "resty.spinguard.mix"


local _M = {}
local mt = { __index = _M }


-- split_by_size fills the two work lists of the alias method.
local function split_by_size(scaled)
    local small, large = {}, {}

    for n, value in ipairs(scaled) do
        if value < 1 then
            small[#small + 1] = n
        else
            large[#large + 1] = n
        end
    end

    return small, large
end


-- alias_table builds Walker's table. Each step settles one peer for good, so
-- it ends after as many steps as there are peers.
local function alias_table(peers, total)
    local scaled, keep, alias = {}, {}, {}

    for n, peer in ipairs(peers) do
        scaled[n] = peer.weight * #peers / total
        keep[n], alias[n] = 1, n
    end

    local small, large = split_by_size(scaled)

    for _ = 1, #peers do
        local s, l = small[#small], large[#large]
        if not s or not l then
            break
        end

        small[#small] = nil
        keep[s], alias[s] = scaled[s], l
        scaled[l] = scaled[l] + scaled[s] - 1

        if scaled[l] < 1 then
            large[#large] = nil
            small[#small + 1] = l
        end
    end

    return keep, alias
end


-- new takes checked peers, a start from 0 up to 1 as seed, and cost(peer): how
-- long the peer is expected to take.
function _M.new(peers, start, cost)
    local list, total = {}, 0

    for _, peer in ipairs(peers) do
        if peer.weight > 0 then
            list[#list + 1] = peer
            total = total + peer.weight
        end
    end

    local keep, alias = alias_table(list, total)

    return setmetatable({
        peer = list,
        keep = keep,
        alias = alias,
        cost = cost or function() return 0 end,
        random = mix.generator((start or 0) * 2147483646),
    }, mt)
end


local function draw(self, size)
    local n = floor(self.random() * size) + 1
    if n > size then
        n = size
    end

    return self.random() < self.keep[n] and n or self.alias[n]
end


-- find returns a peer, or nil if none has a weight.
function _M.find(self)
    local size = #self.peer
    if size == 0 then
        return nil
    end

    local a, b = draw(self, size), draw(self, size)
    if a == b then
        return self.peer[a]
    end

    local first, second = self.peer[a], self.peer[b]

    return self.cost(second) < self.cost(first) and second or first
end


return _M
