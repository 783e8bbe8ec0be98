-- In place of resty.swrr of lua-resty-balancer.

local compat = require "resty.spinguard.compat"


return compat.module(compat.rotation)
