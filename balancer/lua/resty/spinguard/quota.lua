-- A token bucket that all workers share, in one number of the shared dict:
-- tokens = number + rate * seconds. So time alone fills it, taking one is one
-- atomic addition, and a worker that dies leaves nothing behind. Where the
-- dict is full everything is let through, and counted.

local index = require("resty.spinguard.metrics").index

local setmetatable = setmetatable


local UNSHARED = index.bounds_unshared
local DEBT = 1024   -- more than all workers can take at one moment


local _M = {}
local mt = { __index = _M }


local dict
local epoch = 0


-- init sets the time that the seconds are counted from. It outlives a reload.
function _M.init(shared, now)
    dict = shared
    dict:safe_add("t0", math.floor(now))
    epoch = dict:get("t0") or 0
end


-- new takes the key, tokens a second, the most that can be saved up, and the
-- row of numbers to count in. A new bucket is full.
function _M.new(key, rate, burst, row)
    return setmetatable({ key = key, rate = rate, burst = burst, row = row,
                          shut = 0, fed = false }, mt)
end


-- shut_for returns the seconds for which this worker knows the bucket empty.
local function shut_for(self, now)
    local wait = self.shut - now

    return wait > 0 and wait * self.rate <= DEBT and wait or nil
end


local function incr(self, by, now)
    local value = dict:incr(self.key, by)

    if not value then
        dict:safe_add(self.key, self.burst - self.rate * (now - epoch))
        value = dict:incr(self.key, by)
    end

    if not value then
        self.row[UNSHARED] = self.row[UNSHARED] + 1
    end

    return value
end


-- trim throws away what is over the burst. Two workers that do it at the same
-- moment would throw away twice as much: then both put theirs back, and the
-- next request does it again.
local function trim(self, value, now)
    local over = value + self.rate * (now - epoch) - self.burst
    if over <= 0 then
        return self.burst + over
    end

    local after = incr(self, -over, now)
    if after and over > 2 and value - over - after > over / 2 then
        incr(self, over, now)
    end

    return self.burst
end


-- level turns the number into tokens. A debt that no worker can have made
-- comes from a clock that went back: the bucket begins anew, empty.
local function level(self, value, now)
    local tokens = value + self.rate * (now - epoch)

    if tokens < -DEBT then
        dict:safe_set(self.key, -self.rate * (now - epoch))
        return 0
    end

    return tokens > self.burst and trim(self, value, now) or tokens
end


-- add puts tokens into the bucket, also none, and returns how many there are.
function _M.add(self, tokens, now)
    self.fed = true

    local value = incr(self, tokens, now)

    return value and level(self, value, now) or self.burst
end


-- ready says whether there is a token now.
function _M.ready(self, now)
    if shut_for(self, now) then
        return false
    end

    local value = dict:get(self.key)
    if not value then
        return true
    end

    return level(self, value, now) >= 1
end


-- take takes one token, or returns false and the seconds until there is one.
-- Until then the dict is not asked again.
function _M.take(self, now)
    local wait = shut_for(self, now)
    if wait then
        return false, wait
    end

    local value = incr(self, -1, now)
    if not value then
        return true
    end

    if level(self, value + 1, now) >= 1 then
        return true
    end

    value = incr(self, 1, now) or 0
    local tokens = value + self.rate * (now - epoch)
    wait = self.rate > 0 and (1 - tokens) / self.rate or 1

    if not self.fed then
        self.shut = now + wait
    end

    return false, wait
end


-- drop forgets a bucket that is used no longer.
function _M.drop(key)
    dict:delete(key)
end


return _M
