-- The inputs that hang, starve or crash today's balancers, each by name,
-- through every entry: the input check, update(), and new, reinit, set, incr,
-- decr and delete of the interface of lua-resty-balancer.

local chash = require "resty.spinguard.chash"
local check = require "resty.spinguard.check"
local roundrobin = require "resty.spinguard.roundrobin"
local spinguard = require "resty.spinguard"
local t = require "t.check"


local STEPS = 20000000
local nan = 0 / 0


spinguard.init({ dict = "spinguard", dir = ngx.config.prefix() .. "/run" })


-- Pairs of weights. taken: is a list of them accepted?
local INPUTS = {
    { "5, 3", 5, 3, true },
    { "0, -1", 0, -1 },
    { "-1, 0", -1, 0 },
    { "-1, 1", -1, 1 },
    { '"nan", 1', "nan", 1 },
    { '"NaN", 1', "NaN", 1 },
    { "1, NaN", 1, nan },
    { "NaN, NaN", nan, nan },
    { '"inf", 1', "inf", 1 },
    { '"Infinity", 1', "Infinity", 1 },
    { '"-inf", 1', "-inf", 1 },
    { '"1e999", 1', "1e999", 1 },
    { "inf, 1", 1 / 0, 1 },
    { "0.1, 0.3", 0.1, 0.3 },
    { "0.7, 0.2", 0.7, 0.2 },
    { '"abc", 1', "abc", 1 },
    { '"0x10", 1', "0x10", 1 },
    { "1e9, 1", 1e9, 1 },
    { "2^53+2, 1", 2 ^ 53 + 2, 1 },
    { "1e300, 1", 1e300, 1 },
    { '"0", 1', "0", 1, true },
    { '1, "0"', 1, "0", true },
    { '"0", "0"', "0", "0", false, true },
    { "0, 0", 0, 0, false, true },
    { "true, 1", true, 1 },
    { "{}, 1", {}, 1 },
    { "65535, 1", 65535, 1, true },
    { "65536, 1", 65536, 1 },
}


local function finds(picker, name)
    for i = 1, 200 do
        local ok, id, err = t.steps(STEPS, picker.find, picker, "k" .. i)
        t.ok(ok, name, ": find raised: ", tostring(id))
        t.ok(id == "a" or id == "b" or (id == nil and err), name,
             ": found ", tostring(id))
    end
end


local function through_update(name, a, b, taken)
    local peers = { { address = "10.0.0.1:80", weight = a },
                    { address = "10.0.0.2:80", weight = b } }
    local ok, version, err = t.steps(STEPS, spinguard.update, "fatal", peers)

    t.ok(ok, name, ": update raised: ", tostring(version))
    t.equal(version ~= nil, taken or false, name, ": update: ",
            tostring(err))
    t.ok(version or err:find("^peer"), name, ": ", tostring(err))

    local peer = t.ok(spinguard.pick("fatal"), name, ": nothing to serve")
    t.ok(peer and peer.address:find("^10%.0%.0%.[12]:80$"), name)
end


local function through_module(module, name, a, b, taken)
    local ok, picker, err = t.steps(STEPS, module.new, module,
                                    { a = a, b = b })
    t.ok(ok, name, ": new raised: ", tostring(picker))
    t.equal(picker ~= nil, taken, name, ": new: ", tostring(err))

    if picker then
        finds(picker, name .. " new")
    end

    picker = module:new({ a = 1, b = 1 })

    for _, method in ipairs({ "set", "incr", "decr" }) do
        for id, weight in pairs({ a = a, b = b }) do
            local fine, result = t.steps(STEPS, picker[method], picker, id,
                                         weight)
            t.ok(fine, name, ": ", method, " raised: ", tostring(result))
            finds(picker, name .. " " .. method)
        end
    end

    t.ok(t.steps(STEPS, picker.reinit, picker, { a = a, b = b }), name,
         ": reinit raised")
    finds(picker, name .. " reinit")
end


local function last_node(module)
    local picker = module:new({ a = 1 })

    t.ok(pcall(picker.delete, picker, "a"), "the last delete raised")
    local ok, id, err = t.steps(STEPS, picker.find, picker, "k")
    t.ok(ok and id == nil and err, "find without nodes")

    t.ok(picker:set("a", 1), "set after the last delete")
    t.equal(picker:find("k"), "a", "find after set")
    t.ok(picker:incr("new", 2), "incr of a new node")
    finds(module:new({}), "no nodes")
end


spinguard.update("fatal", { "10.0.0.1:80", "10.0.0.2:80" })

for _, input in ipairs(INPUTS) do
    local name, a, b, taken, zero = input[1], input[2], input[3], input[4],
                                    input[5]
    through_update(name, a, b, taken)

    for _, module in ipairs({ roundrobin, chash }) do
        through_module(module, name, a, b, taken or zero or false)
    end
end

last_node(roundrobin)
last_node(chash)

-- Every pair of small integers, and of three.
for a = -3, 3 do
    for b = -3, 3 do
        local picker = roundrobin:new({ a = a, b = b })
        t.equal(picker ~= nil, a >= 0 and b >= 0, a, " ", b)

        if picker then
            finds(picker, a .. " " .. b)
        end
    end
end

-- One node never starves another: fractions are refused, whole numbers kept.
local shares = roundrobin:new({ a = 1, b = 3 })
local got = { a = 0, b = 0 }
for _ = 1, 400 do
    local id = shares:find()
    got[id] = got[id] + 1
end
t.equal(got.a, 100, "share of 1 in 1, 3")

-- A worker forgets what has had no request for five minutes, not before.
local upstream = require "resty.spinguard.upstream"
local now = ngx.now()
upstream.sweep(now + 200)
t.ok(upstream.known("fatal"), "a picker that was used is kept")
upstream.sweep(now + 400)
t.ok(not upstream.known("fatal"), "one that is idle is not")
t.ok(spinguard.pick("fatal"), "and is built anew")

-- Where a worker forgets between any two requests, both peers have some.
local had = {}
t.ok(spinguard.update("rare", { "10.0.0.1:80", "10.0.0.2:80" }))
for i = 1, 20 do
    local peer = spinguard.pick("rare")
    had[peer and peer.address or "none"] = true
    upstream.sweep(now + 1000 * i)
end
t.ok(had["10.0.0.1:80"] and had["10.0.0.2:80"], "one peer has all requests")

t.equal(check.peers({}), nil, "an empty list")
t.equal(check.peers(nil), nil, "no list")
t.equal(check.peers({ "10.0.0.1:80", nil, "10.0.0.2:80" }), nil, "a gap")


return t
