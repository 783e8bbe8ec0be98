-- In place of resty.chash of lua-resty-balancer.

local compat = require "resty.spinguard.compat"
local later = require "resty.spinguard.later"

local next_of = later.next


local _M = compat.module(later)


-- find returns the id of the node that a key belongs to. Each module has its
-- own, so that LuaJIT's traces of one picker do not lead into another's.
function _M.find(self, key)
    local n = next_of(self, key)
    if not n then
        return nil, compat.NOBODY
    end

    return self.list[n]
end


return _M
