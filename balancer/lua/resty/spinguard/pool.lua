-- A mirror of nginx's pool of idle connections to the peers of an upstream
-- (`keepalive N`): nginx tells nobody what it holds. Without that line N is 0
-- and every try opens a connection, which is then exact. A connection that the
-- peer has closed while it was idle still counts as one that can be reused.

local remove = table.remove
local setmetatable = setmetatable


local IDLE = 60     -- seconds; nginx's keepalive_timeout


local _M = {}
local mt = { __index = _M }


-- new takes the most connections that are kept.
function _M.new(size)
    return setmetatable({ size = size, peers = {}, since = {} }, mt)
end


local function drop(self, i)
    local load = remove(self.peers, i)
    remove(self.since, i)
    load.idle = load.idle - 1
end


-- expire forgets what nginx has closed for its age; the oldest come first.
function _M.expire(self, now)
    while self.peers[1] and now - self.since[1] >= IDLE do
        drop(self, 1)
    end
end


-- take uses an idle connection to a peer, or returns false.
function _M.take(self, load, now)
    self:expire(now)

    if load.idle == 0 then
        return false
    end

    for i = #self.peers, 1, -1 do
        if self.peers[i] == load then
            drop(self, i)
            break
        end
    end

    return true
end


-- put keeps a connection; if that is one too many the oldest goes.
function _M.put(self, load, now)
    if self.size == 0 then
        return
    end

    if #self.peers >= self.size then
        drop(self, 1)
    end

    self.peers[#self.peers + 1] = load
    self.since[#self.since + 1] = now
    load.idle = load.idle + 1
end


return _M
