-- Properties of the pickers over generated peers and changes. CASES is a
-- global of the runner.

local check = require "resty.spinguard.check"
local chash = require "resty.spinguard.chash"
local hash = require "resty.spinguard.hash"
local least = require "resty.spinguard.least"
local mix = require "resty.spinguard.mix"
local numbers = require "resty.spinguard.numbers"
local rotation = require "resty.spinguard.rotation"
local roundrobin = require "resty.spinguard.roundrobin"
local t = require "t.check"
local values = require "t.values"


local SEED = 20261130
local STEPS = 20000000  -- a ring of 65,536 points is built in half of that
local PICK = 500        -- instructions, at 200 peers
local RINGS = jit.status() and 20 or 100  -- they are slow without the compiler
local random = mix.generator(SEED)


local function upto(n)
    return math.floor(random() * n) + 1
end


local function weight()
    return values.weight(upto)
end


local function valid_peers(n, top)
    local peers = {}

    for i = 1, n do
        local host = "10." .. math.floor(i / 250) .. ".0." .. i % 250
        peers[i] = { address = host .. ":80", host = host, port = 80,
                     weight = upto(top) - 1 }
    end

    peers[1].weight = upto(top)

    return peers
end


local function total(peers)
    local sum = 0
    for _, peer in ipairs(peers) do
        sum = sum + peer.weight
    end

    return sum
end


-- Over one lap, from any point, the shares are the weights.
local function shares_are_exact()
    local peers = valid_peers(upto(60), upto(40))
    local picker = rotation.new(peers, random())
    local sum = total(peers)

    for _ = 1, upto(sum) do
        picker:find()
    end

    local got = {}
    for _ = 1, sum do
        local peer = picker:find()
        got[peer] = (got[peer] or 0) + 1
    end

    for _, peer in ipairs(peers) do
        t.equal(got[peer] or 0, peer.weight, "share of ", peer.address)
    end
end


-- Smooth: in a stretch of time a peer has its weight's part of turns, give or
-- take one; a window of a tenth of the lap's picks is such a stretch, give or
-- take some slots, as each of the up to 40 peers may have a turn more or less
-- in it. In 60,000 random laps it was 7 slots at most, each one more being a
-- third as likely. Also beside a heavy peer, which must not come in a row.
local function order_is_smooth()
    local peers = valid_peers(upto(40), 30)
    if upto(2) == 1 then
        peers[upto(#peers)].weight = upto(1000)
    end

    local picker = rotation.new(peers, random())
    local sum = total(peers)
    local window = math.ceil(sum / 10)
    local got = {}

    for _ = 1, window do
        local peer = picker:find()
        got[peer] = (got[peer] or 0) + 1
    end

    for _, peer in ipairs(peers) do
        local fair = peer.weight * window / sum
        local most = 1 + 12 * peer.weight / sum + 1
        t.ok(math.abs((got[peer] or 0) - fair) <= most, "peer ",
             peer.address, " got ", got[peer] or 0, " of ", window,
             ", fair is ", fair)
    end
end


-- Any list of peers is either refused with a reason, or every pick returns a
-- peer that has a weight.
local function any_list()
    local list = {}

    for i = 1, upto(200) do
        list[i] = { address = "10.0.1." .. i .. ":80", weight = weight() }
    end

    local ok, peers, err = t.steps(200000, check.peers, list)
    if not t.ok(ok, "check raised: ", tostring(peers)) then
        return
    end

    if not peers then
        t.ok(type(err) == "string" and err ~= "", "refused without reason")
        return
    end

    local kinds = { rotation, least }
    if upto(RINGS) == 1 then
        kinds[3] = hash
    end

    for _, kind in ipairs(kinds) do
        local picker = kind.new(peers, random())

        for i = 1, 20 do
            local fine, peer = t.steps(PICK, picker.find, picker, "k" .. i)
            t.ok(fine and peer and peer.weight > 0, "pick: ",
                 tostring(peer))
        end
    end
end


-- A change of one peer moves only what that peer gains or loses.
local function hash_is_stable()
    local peers = valid_peers(upto(20) + 1, 10)
    local before = hash.new(peers)
    local changed = peers[upto(#peers)]
    local old = changed.weight
    local keys, where = 300, {}

    for i = 1, keys do
        where[i] = before:find("key" .. i)
    end

    changed.weight = upto(20) - 1
    if total(peers) == 0 then
        changed.weight = 1
    end

    local after = hash.new(peers)

    for i = 1, keys do
        local peer = after:find("key" .. i)
        if peer ~= where[i] then
            local gained = changed.weight > old
            t.ok((gained and peer == changed)
                 or (not gained and where[i] == changed),
                 "key", i, " moved between peers that did not change")
        end
    end
end


-- weights_of returns what the nodes of a picker weigh, by id.
local function weights_of(picker)
    local weights, all = {}, picker.numbers or numbers.new(picker.list, 0)

    for n, id in ipairs(picker.list) do
        if all:of(id) == n then
            weights[id] = picker.kind.weight_of(picker, n)
        end
    end

    return weights
end


-- A ring that was changed is the one that would be made anew.
local function same_ring(picker)
    local again = chash:new(weights_of(picker))

    for i = 1, 200 do
        t.equal(picker:find("key" .. i), again:find("key" .. i),
                "key", i, " on a ring after changes")
    end
end


local OPERATIONS = { "set", "incr", "decr", "delete", "find", "find" }


-- Any sequence of changes through the interface of lua-resty-balancer.
local function any_sequence()
    local module = upto(RINGS) == 1 and chash or roundrobin
    local nodes = {}

    for i = 1, upto(8) do
        nodes["node" .. i] = weight()
    end

    local ok, picker = t.steps(STEPS, module.new, module, nodes)
    if not t.ok(ok, "new raised: ", tostring(picker)) then
        return
    end

    picker = picker or module:new({ node1 = 1 })

    for i = 1, 20 do
        local name = OPERATIONS[upto(#OPERATIONS)]
        local fine, result, err = t.steps(STEPS, picker[name], picker,
                                          "node" .. upto(9), weight())
        t.ok(fine, name, " raised: ", tostring(result))
        t.ok(result ~= nil or type(err) == "string", name, ": nil and no "
             .. "reason")

        if name == "find" and result then
            t.ok((weights_of(picker)[result] or 0) > 0,
                 "found a node without weight ", i)
        end
    end

    local live, got = 0, {}
    for _, weight_now in pairs(weights_of(picker)) do
        live = live + weight_now
    end

    if module == chash then
        same_ring(picker)
    end

    if module == roundrobin and live > 0 and live < 2000 then
        for _ = 1, live do
            local id = picker:find()
            got[id] = (got[id] or 0) + 1
        end

        for id, fair in pairs(weights_of(picker)) do
            t.equal(got[id] or 0, fair, "share after changes of ", id)
        end
    end
end


-- Two draws by weight: with equal costs the shares are near the weights.
local function draws_by_weight()
    local peers = valid_peers(5, 10)
    local picker = least.new(peers, random())
    local sum, n, got = total(peers), 20000, {}

    for _ = 1, n do
        local peer = picker:find()
        got[peer] = (got[peer] or 0) + 1
    end

    for _, peer in ipairs(peers) do
        local share, fair = (got[peer] or 0) / n, peer.weight / sum
        t.ok(math.abs(share - fair) < 0.02, "share of ", peer.address, " ",
             share, ", fair is ", fair)
    end
end


for i = 1, _G.CASES do
    any_list()
    any_sequence()
    shares_are_exact()
    order_is_smooth()

    if i % RINGS == 0 then
        hash_is_stable()
    end
end

for _ = 1, 5 do
    draws_by_weight()
end

return t
