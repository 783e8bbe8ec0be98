-- A balancer that believes what it hears: its registry, whatever was published
-- last, as balancers do that poll a shared dict; and its own checks, as those
-- do that take a peer out when a connect fails.

local balancer = require "ngx.balancer"
local cjson = require "cjson.safe"


local CHECK = 0.1       -- seconds between two checks of all peers
local PATIENCE = 200    -- milliseconds for a connect


local _M = {}


local turn = 0
local down = {}
local times_down = 0


function _M.update(peers)
    ngx.shared.registry:set("peers", cjson.encode(peers))
end


local function published()
    return cjson.decode(ngx.shared.registry:get("peers"))
end


local function check(premature)
    if premature then
        return
    end

    for _, peer in ipairs(published()) do
        local host, port = peer:match("^(.+):(%d+)$")
        local socket = ngx.socket.tcp()
        socket:settimeout(PATIENCE)

        local ok = socket:connect(host, tonumber(port))
        if not ok and not down[peer] then
            times_down = times_down + 1
        end

        down[peer] = not ok
        socket:close()
    end

    ngx.timer.at(CHECK, check)
end


-- watch checks the peers from this worker.
function _M.watch()
    ngx.timer.at(CHECK, check)
end


function _M.admin()
    if ngx.var.uri == "/admin/metrics" then
        return ngx.say('spinguard_balancer_ejections_total{upstream="shop"} ',
                       times_down)
    end

    ngx.req.read_body()
    _M.update(cjson.decode(ngx.req.get_body_data()) or {})
    ngx.say("thanks")
end


function _M.balance()
    local peers = {}
    for _, peer in ipairs(published()) do
        if not down[peer] then
            peers[#peers + 1] = peer
        end
    end

    if #peers == 0 then
        return ngx.exit(503)
    end

    turn = turn + 1
    local host, port = peers[turn % #peers + 1]:match("^(.+):(%d+)$")
    balancer.set_current_peer(host, tonumber(port))
end


return _M
