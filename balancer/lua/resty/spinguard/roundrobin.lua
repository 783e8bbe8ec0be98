-- In place of resty.roundrobin of lua-resty-balancer.

local compat = require "resty.spinguard.compat"
local rotation = require "resty.spinguard.rotation"

local begin = rotation.begin
local next_of = rotation.next
local start = compat.start


local _M = compat.module(rotation)


-- find returns the id of the node to use.
function _M.find(self)
    if not self.now then
        begin(self, start())
    end

    local n = next_of(self)
    if not n then
        return nil, compat.NOBODY
    end

    return self.list[n]
end


return _M
