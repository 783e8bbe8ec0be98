-- In place of resty.swrr of lua-resty-balancer.

local compat = require "resty.spinguard.compat"
local rotation = require "resty.spinguard.rotation"
local roundrobin = require "resty.spinguard.roundrobin"


local _M = compat.module(rotation)


_M.find = roundrobin.find


return _M
