-- In place of resty.chash of lua-resty-balancer.

local compat = require "resty.spinguard.compat"


return compat.module(compat.hash)
