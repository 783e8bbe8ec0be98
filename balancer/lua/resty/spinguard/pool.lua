-- A mirror of nginx's pool of idle connections to the peers of an upstream
-- (`keepalive N`): nginx tells nobody what it holds. It follows the rules of
-- nginx: the last one used is the first one taken, the longest idle goes when
-- there is one too many, and one that is too old or has carried enough
-- requests is not kept. Without that line N is 0 and every try opens a
-- connection, which is then exact. What the mirror can't see is a connection
-- that the peer has closed while it was idle.

local remove = table.remove
local setmetatable = setmetatable


local LIFE = 3600   -- seconds; nginx's keepalive_time


local _M = {}
local mt = { __index = _M }


-- new takes the most connections that are kept, the seconds for which one may
-- be idle, and the requests that one may carry.
function _M.new(size, timeout, requests)
    return setmetatable({ size = size, timeout = timeout,
                          requests = requests, idle = {} }, mt)
end


local function drop(self, i)
    local connection = remove(self.idle, i)
    connection.load.idle = connection.load.idle - 1

    return connection
end


-- expire forgets what nginx has closed for its age; the oldest come first.
function _M.expire(self, now)
    local idle = self.idle

    while idle[1] and now - idle[1].since >= self.timeout do
        drop(self, 1)
    end
end


-- take returns an idle connection to a peer, or a new one, and whether it was
-- idle.
function _M.take(self, load, now)
    self:expire(now)

    for i = #self.idle, load.idle > 0 and 1 or math.huge, -1 do
        if self.idle[i].load == load then
            return drop(self, i), true
        end
    end

    return { load = load, since = now, born = now, carried = 0 }, false
end


-- put keeps a connection that has carried one request more.
function _M.put(self, connection, now)
    connection.carried = connection.carried + 1

    if self.size == 0 or connection.carried >= self.requests
        or now - connection.born > LIFE
    then
        return
    end

    if #self.idle >= self.size then
        drop(self, 1)
    end

    connection.since = now
    connection.load.idle = connection.load.idle + 1
    self.idle[#self.idle + 1] = connection
end


return _M
