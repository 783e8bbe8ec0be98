-- A weighted rotation as many sites have one. Its weights are thought to be
-- numbers, and nothing checks that they are.

local _M = {}
local mt = { __index = _M }


local function gcd(a, b)
    if b == 0 then
        return a
    end

    return gcd(b, a % b)    -- HOT: a % "0" is NaN, and NaN is never 0
end


-- new returns a rotation in which each peer has as many slots as its weight,
-- divided by what all weights have in common.
function _M.new(peers)
    local common = 0

    for _, peer in ipairs(peers) do
        common = gcd(common, peer.weight)
    end

    local slots = {}

    for _, peer in ipairs(peers) do
        for _ = 1, peer.weight / common do
            slots[#slots + 1] = peer.address
        end
    end

    return setmetatable({ slots = slots, at = 0 }, mt)
end


function _M:find()
    self.at = self.at % #self.slots + 1

    return self.slots[self.at]
end


return _M
