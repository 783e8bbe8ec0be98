-- The parts that are pure: who is to blame, buckets, options, when a
-- quarantine ends, what a version changed.

local blame = require "resty.spinguard.blame"
local crc = require "resty.spinguard.crc"
local health = require "resty.spinguard.health"
local load = require "resty.spinguard.load"
local options = require "resty.spinguard.options"
local pool = require "resty.spinguard.pool"
local quota = require "resty.spinguard.quota"
local record = require "resty.spinguard.record"
local t = require "t.check"


local function judge(name, tries, want_poison, want_blamed)
    local list = {}

    for i, try in ipairs(tries) do
        list[i] = { address = try[1], outcome = try[2],
                    lately = try[3] }
    end

    local failures, poison = blame.judge(list, "client", "GET /")
    local blamed = {}

    for i, failure in ipairs(failures) do
        blamed[i] = failure.address
                    .. (failure.compared and " compared" or "")
    end

    t.equal(poison, want_poison, name, ": poison")
    t.equal(table.concat(blamed, ", "), want_blamed, name, ": blamed")
end


judge("all is well", { { "a", "success" } }, false, "")
judge("one fails, the next answers", { { "a", "failure" },
      { "b", "success" } }, false, "a compared")
judge("cannot be connected", { { "a", "unconnected" } }, false, "a")
judge("fails at two that answer others", { { "a", "failure", true },
      { "b", "failure", true } }, true, "")
judge("time-outs at two that answer others", { { "a", "timeout", true },
      { "b", "timeout", true } }, true, "")
judge("fails at two, one answers nobody", { { "a", "failure", true },
      { "b", "failure" } }, false, "a, b")
judge("fails at one only", { { "a", "failure", true } }, false, "a")
judge("twice at the same", { { "a", "failure", true },
      { "a", "failure", true } }, false, "a")
judge("one is gone, one fails", { { "a", "unconnected", true },
      { "b", "failure", true } }, false, "a, b")
judge("the client left", { { "a", "aborted", true } }, false, "")
judge("nothing was tried", {}, false, "")


-- Buckets in the shared dict. Time is given.
local shared = ngx.shared.spinguard
local row = {}
for _, at in pairs(require("resty.spinguard.metrics").index) do
    row[at] = 0
end

quota.init(shared, 100)
local b = quota.new("units", 2, 3, row)
for i = 1, 3 do
    t.ok(b:take(100), "token ", i, " of the burst")
end

local ok, wait = b:take(100)
t.equal(ok, false, "an empty bucket")
t.equal(wait, 0.5, "seconds to wait")
t.equal(b:ready(100.4), false, "not yet ready")

-- Another worker has the same bucket, whatever it knows.
local other = quota.new("units", 2, 3, row)
t.equal(other:take(100), false, "empty for the other too")
t.ok(other:take(100.5), "half a second later")
t.equal(b:take(100.5), false, "that token is gone")
t.equal(b:take(99), false, "a clock that goes back adds nothing")
t.ok(b:take(101), "and goes on from there")
t.equal(quota.new("units", 2, 3, row):add(100, 101), 3,
        "no more than the burst is saved up")
t.equal(quota.new("units", 2, 3, row):add(0, 5000), 3, "nor in an hour")

-- A clock that went back by an hour does not shut the bucket for an hour.
local back = quota.new("units", 2, 3, row)
t.equal(back:take(1400), false, "the clock is put right: empty")
t.ok(back:take(1401), "and fills from there")

-- Two workers that trim at the same moment, one in the midst of the other.
local twice = quota.new("twice", 1000, 10, row)
twice:take(100)
local incr, nested = shared.incr, false
local meta = getmetatable(shared).__index
meta.incr = function(self, key, by, ...)
    if by < -1 and not nested then
        nested = true
        quota.new("twice", 1000, 10, row):add(0, 4000)
    end
    return incr(self, key, by, ...)
end
twice:add(0, 4000)
meta.incr = incr
t.equal(twice:add(0, 4000), 10, "nothing is thrown away twice")

-- Nothing can be stored: all is let through, and counted.
local small, fill = ngx.shared.small, 0
repeat
    fill = fill + 1
until not small:safe_set("fill" .. fill, ("x"):rep(100))
for i = 1, 200 do
    small:safe_set("f" .. i, i)
end
small:safe_add("t0", 100)
quota.init(small, 100)
local full = quota.new(("k"):rep(60), 0.001, 1, row)
for i = 1, 5 do
    t.ok(full:take(100), "a full dict, request ", i)
end
t.equal(row[require("resty.spinguard.metrics").index.bounds_unshared], 5,
        "let through and counted")
quota.init(shared, 100)


-- The mirror of nginx's pool.
local mirror = pool.new(2, 60, 3)
local pa, pb = { idle = 0 }, { idle = 0 }
local c1, idle = mirror:take(pa, 0)
t.equal(idle, false, "the pool is empty")
mirror:put(c1, 0)
local c2
c2, idle = mirror:take(pa, 1)
t.ok(idle and c2 == c1, "the idle one is reused")
mirror:put(c2, 1)
c2, idle = mirror:take(pa, 2)
mirror:put(c2, 2)
t.ok(idle and pa.idle == 0, "three requests are enough for a connection")
for i = 1, 3 do
    mirror:put({ load = i == 3 and pb or pa, carried = 0, born = i }, i)
end
t.equal(pa.idle + pb.idle * 10, 11, "two are kept, the oldest goes")
mirror:expire(63)
t.equal(pa.idle + pb.idle, 0, "idle for too long")


local peers = {}
local a = load.of(peers, "a")
load.answered(a, "one", 0.1, 100)
t.equal(load.lately(a, "one", 101), false, "only this client was answered")
t.equal(load.lately(a, "two", 101), true, "another client was answered")
load.answered(a, "two", 0.1, 102)
t.equal(load.lately(a, "two", 103), true, "the one before was another")
t.equal(load.lately(a, "two", 120), false, "long ago")


for name, opts in pairs({
    unknown = { pickr = "hash" },
    kind = { picker = "random" },
    ["no key"] = { picker = "hash" },
    tries = { tries = 0 },
    fraction = { tries = 1.5 },
    nan = { rate = 0 / 0 },
    negative = { rate = -1 },
    text = { rate = "5" },
}) do
    t.equal(options.fill(opts), nil, "options: ", name)
end

t.equal(options.fill({ eject_after = false }).eject_after, 0, "switched off")
t.equal(options.fill({}).tries, 2, "a default")

-- What false switches off no longer bounds anything.
local off = {}
for name, value in pairs(options.fill({})) do
    if type(value) == "number" then
        off[name] = false
    end
end
off = t.ok(options.fill(off), "everything off")
for name, value in pairs({ tries = 1, panic = 1, max_ejection = 1,
                           retry_budget = math.huge, slow_start = 0,
                           rate = 0, eject_window = 10 }) do
    t.equal(off[name], value, name, " off")
end
t.equal(options.fill({ eject_window = 0 }), nil, "a window of nothing")


local old = { peers = { { address = "a", weight = 5 },
                        { address = "b", weight = 1 } } }
local new = { peers = { { address = "a", weight = "0" },
                        { address = "c", weight = 2 } } }
t.equal(table.concat(record.changes(old, new), "; "),
        'a weight 5 -> "0"; c added, weight 2; b removed, weight 1',
        "changes")

local kept = record.decode(record.encode({
    version = 3, digest = "x", history = {}, dropped = {},
    peers = { { host = "h", port = 1, address = "h:1", weight = 0 / 0 },
              { host = "h", port = 2, address = "h:2", weight = "0" } },
}))
t.ok(kept.peers[1].weight ~= kept.peers[1].weight, "NaN survives the dict")
t.equal(kept.peers[2].weight, "0", "a string stays a string")


-- However many requests a client makes up, the dict does not fill.
health.init(shared)
for i = 1, 3000 do
    health.refuse("made-up", "client", "GET /" .. i, { poison_time = 100 })
end

local notes = 0
for _, key in ipairs(shared:get_keys(0)) do
    notes = notes + (key:find("^z:made%-up:") and 1 or 0)
end
t.ok(notes > 200 and notes <= 256, notes, " notes of poison requests")
t.ok(health.refused("made-up", "client", "GET /3000"), "the last is refused")
t.ok(not health.refused("made-up", "client", "GET /0"), "another is not")
t.ok(not health.refused("made-up", "other", "GET /3000"), "nor of another")


-- A worker that has to wait for a processor while it takes a seat does not
-- share it with one that comes meanwhile.
local seats = require "resty.spinguard.seats"
local sys = require "resty.spinguard.sys"
local real_id, real_parent, second = ngx.worker.id, sys.parent, nil
ngx.worker.id = function() return 0 end  -- luacheck: ignore 122

-- sleep is what the first worker does while it has the lock.
local function sleep()
    local start = ngx.now()

    repeat
        ngx.update_time()
    until ngx.now() - start > 0.3
end

sys.parent = function()
    sys.parent = real_parent
    sleep()
    second = seats.claim(1000000)

    return real_parent()
end
t.ok(seats.init(shared, "units", 4096), "memory for seats")
t.ok(seats.claim(1), "the slow one has a seat")
t.equal(second, false, "one that comes meanwhile has to come again")
t.ok(seats.claim(1000000), "then it has one")
ngx.worker.id = real_id  -- luacheck: ignore 122


-- The sums are those of ngx; and whatever calls them is compiled also after
-- they were called very often by code that is not.
for n = 0, 300 do
    local text = string.rep(string.char(n % 256), n)
    t.equal(crc.short(text), ngx.crc32_short(text), "short, ", n, " bytes")
    t.equal(crc.long(text), ngx.crc32_long(text), "long, ", n, " bytes")
end

local function often(f)
    for _ = 1, 600000 do
        f("10.0.0.1:80")
    end
end

jit.off(often)
often(crc.short)
often(crc.long)

local compiled = 0
local function count(what)
    compiled = compiled + (what == "stop" and 1 or 0)
end

jit.off(count)
jit.attach(count, "trace")

for _, f in ipairs({ crc.short, crc.long }) do
    local before = compiled
    assert(loadstring("local f = ... for _ = 1, 1000 do f('a') end"))(f)
    t.ok(compiled > before, "a loop of sums is compiled")
end

jit.attach(count)


-- find of the module finds what the picker's own does, and so does one that was
-- kept: not yet asked, asked, changed, changed and asked, emptied.
local chash = require "resty.spinguard.chash"
local one = chash:new({ ["10.0.0.1:80"] = 2, ["10.0.0.2:80"] = 3 })
local same = chash:new({ ["10.0.0.1:80"] = 2, ["10.0.0.2:80"] = 3 })

local finds = { chash.find, one.find }

local function alike(state)
    for n = 1, 200 do
        for _, find in ipairs(finds) do
            t.equal(find(one, "key" .. n), same:find("key" .. n), state)
        end
    end

    finds[#finds + 1] = one.find
end

alike("new")
alike("asked")

for _, weight in ipairs({ 3, 1, 2, 9, 0 }) do
    one:set("10.0.0.1:80", weight)
    same:set("10.0.0.1:80", weight)
    one:find("key")
    finds[#finds + 1] = one.find
    alike("weight " .. weight)
end

one:set("10.0.0.2:80", 0)
t.equal(chash.find(one, "key"), nil, "of nobody")
one:reinit({ ["10.0.0.3:80"] = 1 })
t.equal(chash.find(one, "key"), "10.0.0.3:80", "after reinit")


-- The first worker takes a version back on time, the sames later.
local id = 0
ngx.worker.id = function() return id end  -- luacheck: ignore 122
package.loaded["resty.spinguard.ledger"] = nil
local ledger = require "resty.spinguard.ledger"

ledger.entries = {
    { kind = "version", upstream = "u", version = 2, digest = "",
      until_ms = 10000 },
    { kind = "version", upstream = "u", version = 9, digest = "dd",
      until_ms = 20000 },
}

t.equal(ledger.holds("u", 2, "aa", 9), 10, "in quarantine by number")
t.equal(ledger.holds("u", 2, "aa", 10), nil, "ended in the first worker")
t.equal(ledger.holds("u", 3, "dd", 9), 20, "in quarantine by digest")
t.equal(ledger.holds("u", 9, "aa", 9), nil, "ansame digest")
t.equal(ledger.holds("v", 2, "aa", 9), nil, "ansame upstream")
id = 1
t.equal(ledger.holds("u", 2, "aa", 10), 12, "later in the second worker")


return t
