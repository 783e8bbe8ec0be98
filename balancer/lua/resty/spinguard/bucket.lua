-- A token bucket. Time comes from outside, in seconds; a clock that goes
-- back adds nothing.

local min = math.min
local setmetatable = setmetatable


local _M = {}
local mt = { __index = _M }


-- new takes tokens a second and the most that can be saved up; it is full.
function _M.new(rate, burst, now)
    return setmetatable({ rate = rate, burst = burst, tokens = burst,
                          at = now }, mt)
end


function _M.add(self, tokens)
    self.tokens = min(self.burst, self.tokens + tokens)
end


local function fill(self, now)
    if now > self.at then
        self:add((now - self.at) * self.rate)
    end
    self.at = now
end


-- ready says whether take would return true.
function _M.ready(self, now)
    fill(self, now)

    return self.tokens >= 1
end


-- take takes one token, or returns false and the seconds until there is one.
function _M.take(self, now)
    if self:ready(now) then
        self.tokens = self.tokens - 1
        return true
    end

    return false, (1 - self.tokens) / self.rate
end


return _M
