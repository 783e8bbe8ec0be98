-- In place of resty.chash of lua-resty-balancer.

local compat = require "resty.spinguard.compat"
local later = require "resty.spinguard.later"


local _M = compat.module(later)


_M.find = later.find


return _M
