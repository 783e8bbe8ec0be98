-- A balancer that believes its registry: whatever was published last is what
-- it uses, as balancers do that poll a shared dict.

local balancer = require "ngx.balancer"
local cjson = require "cjson.safe"


local _M = {}


local turn = 0


function _M.update(peers)
    ngx.shared.registry:set("peers", cjson.encode(peers))
end


function _M.admin()
    ngx.req.read_body()
    _M.update(cjson.decode(ngx.req.get_body_data()) or {})
    ngx.say("thanks")
end


function _M.balance()
    local peers = cjson.decode(ngx.shared.registry:get("peers"))
    if #peers == 0 then
        return ngx.exit(503)
    end

    turn = turn + 1
    local host, port = peers[turn % #peers + 1]:match("^(.+):(%d+)$")
    balancer.set_current_peer(host, tonumber(port))
end


return _M
