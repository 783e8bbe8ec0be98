-- Any sequence of publish, quarantine and pick, through the whole library:
-- every pick is a live peer of a version that was accepted and is not in
-- quarantine, or a clear error, within its bound of steps. CASES is a global
-- of the runner.

local cap = require "resty.spinguard.cap"
local ledger = require "resty.spinguard.ledger"
local mix = require "resty.spinguard.mix"
local spinguard = require "resty.spinguard"
local t = require "t.check"
local upstream = require "resty.spinguard.upstream"
local values = require "t.values"


local random = mix.generator(20261201)
local UPDATE = 20000000
local BUILD = 20000000   -- instructions: a ring of 65,536 points
local PICK = 20000       -- at 200 peers, of which many are out
local NAMES = { "plain", "ring", "two", "wrapped" }
local MINUTE = 60


local function upto(n)
    return math.floor(random() * n) + 1
end


local accepted = {}      -- name -> version -> address -> weight
local newest = {}        -- name -> version


spinguard.init({ dict = "spinguard", dir = ngx.config.prefix() .. "/run" })
spinguard.upstream("ring", { picker = "hash",
                             key = function() return "k" .. upto(1000) end })
spinguard.upstream("two", { picker = "least" })


-- A picker of somebody else: it answers, raises, loops, or talks nonsense.
-- Whether it uses drained peers is its own affair; this one does not.
local EVIL = setmetatable({}, { __index = function() error("mine") end,
                                __tostring = function() error("mine") end })


local function foreign(all)
    local picker, peers = {}, {}

    for _, peer in ipairs(all) do
        if peer.weight > 0 then
            peers[#peers + 1] = peer
        end
    end

    function picker.find()
        local kind = upto(6)
        if kind == 1 then
            while true do
                pcall(error, "no end")
            end
        end

        if kind == 2 then
            error(upto(2) == 1 and EVIL or { "no text" })
        end

        if kind == 3 then
            return upto(2) == 1 and EVIL or "10.9.9.9:1", EVIL
        end

        return kind > 4 and peers[upto(#peers)].address or nil
    end

    return picker
end


spinguard.wrap("wrapped", foreign, { steps = 3000, kind = "foreign" })


local function list_of(name)
    local known = newest[name] and accepted[name][newest[name]] or {}
    local list, n = {}, upto(10) == 1 and upto(200) or upto(12)

    for i = 1, n do
        list[i] = { address = "10.0.1." .. i .. ":80",
                    weight = values.weight(upto) }
    end

    -- Mostly good ones, or nothing would ever be accepted.
    if upto(3) > 1 then
        for address in pairs(known) do
            list[#list + 1] = { address = address, weight = upto(9) }
        end

        for i = 1, n do
            list[i].weight = upto(9) - (i > 1 and 1 or 0)
            list[i].address = "10.0." .. upto(250) .. "." .. i .. ":80"
        end
    end

    return list
end


local function publish(name)
    local list = list_of(name)
    local ok, version, err = t.steps(UPDATE, spinguard.update, name, list,
                                     { force = upto(3) == 1 })

    t.ok(ok, "update raised: ", tostring(version))
    t.ok(version or (type(err) == "string" and err ~= ""),
         "an update without version and reason")

    if ok and version and version ~= newest[name] then
        local weights = {}
        for _, peer in ipairs(list) do
            weights[peer.address] = tonumber(peer.weight)
        end

        accepted[name] = accepted[name] or {}
        accepted[name][version], newest[name] = weights, version
    end
end


local function quarantine(name)
    local e = { upstream = name, digest = "",
                until_ms = (ngx.now() + MINUTE) * 1000 }

    if upto(3) == 1 then
        e.kind, e.subject = "peer", "10.0.1." .. upto(12) .. ":80"
    else
        e.kind, e.version = "version", (newest[name] or 1) - upto(4) + 1
    end

    ledger.entries[#ledger.entries + 1] = e
    ledger.epoch = ledger.epoch + 1
    upstream.changed()   -- else it would look at the next turn of the clock
end


local function lift()
    ledger.entries = {}
    ledger.epoch = ledger.epoch + 1
    upstream.changed()
end


local function held(name, kind, what)
    for _, e in ipairs(ledger.entries) do
        if e.upstream == name and e.kind == kind
            and (e.version == what or e.subject == what)
        then
            return true
        end
    end

    return false
end


-- served says whether a version that may serve has this peer.
local function served(name, address)
    for version, weights in pairs(accepted[name] or {}) do
        if not held(name, "version", version)
            and (weights[address] or 0) > 0
        then
            return true
        end
    end

    return false
end


local function pick(name, most)
    local ok, peer, err = t.steps(most, spinguard.pick, name)
    if not t.ok(ok, name, ": pick raised: ", tostring(peer)) then
        return
    end

    if not peer then
        t.ok(type(err) == "string" and err:find(name, 1, true), name,
             ": no peer and no reason: ", tostring(err))
        return
    end

    t.ok(served(name, peer.address), name, ": ", peer.address, " is live in ",
         "no version that may serve; newest is ", tostring(newest[name]),
         ", its weight there ", tostring(newest[name]
             and accepted[name][newest[name]][peer.address]))
end


-- A loop in the foreign picker must end by its cap, and not the test's.
local real = cap.call
cap.call = function(...)
    local hook, mask, count = debug.gethook()
    local ok, a, b = real(...)
    if hook then
        debug.sethook(hook, mask, count)
    end

    return ok, a, b
end


local function sequence()
    local name = NAMES[upto(#NAMES)]

    for _ = 1, 12 do
        local what = upto(6)
        if what <= 2 then
            publish(name)
        elseif what == 3 then
            quarantine(name)
        elseif what == 4 and upto(2) == 1 then
            lift()
        end

        pick(name, BUILD)
        pick(name, PICK)
        pick(name, PICK)
    end
end


for _ = 1, _G.CASES do
    sequence()
end


return t
