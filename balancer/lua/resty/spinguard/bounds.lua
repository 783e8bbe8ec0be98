-- The bounds of a peer, over all workers: requests in flight, and new
-- connections a second. A place is taken before the peer is used, so that two
-- workers never take the last one both; at worst neither gets it.

local metrics = require "resty.spinguard.metrics"
local quota = require "resty.spinguard.quota"
local tally = require "resty.spinguard.tally"

local max = math.max
local pairs = pairs


local UNSHARED = metrics.index.bounds_unshared


local _M = {}


-- new returns the bounds that the options of an upstream set, or nil. row is
-- the n-th row of numbers.
function _M.new(name, opts, row, n)
    if opts.max_inflight == 0 and opts.max_new == 0 then
        return nil
    end

    return {
        name = name,
        row = row,
        row_number = n,
        inflight = opts.max_inflight > 0 and opts.max_inflight or nil,
        rate = opts.max_new > 0 and opts.max_new or nil,
        logged = false,     -- whether anybody calls log(), in any worker
    }
end


local function key(name, address)
    return "n:" .. name .. ":" .. address
end


-- opens is the bucket of new connections to a peer: rate a second, and a
-- tenth of that saved up.
local function opens(self, record, address)
    if not record.opens then
        record.opens = quota.new(key(self.name, address), self.rate,
                                 max(1, self.rate / 10), self.row)
    end

    return record.opens
end


local function counted(self, record, address)
    record.key = record.key or tally.key(self.name, address)

    return record.key
end


-- enforced says whether requests in flight have a bound: not where nobody
-- calls log(), since they would never end.
local function enforced(self)
    if self.inflight and not self.logged then
        self.logged = metrics.total(self.row_number, "requests_finished") > 0
    end

    return self.logged
end


-- reached says whether a peer can take no request now.
function _M.reached(self, record, address, now)
    if self.inflight and enforced(self)
        and tally.total(counted(self, record, address)) >= self.inflight
    then
        return true
    end

    return self.rate ~= nil and record.idle == 0
           and not opens(self, record, address):ready(now)
end


-- take takes a place at a peer, or returns false. leave gives it back.
function _M.take(self, record, address, now)
    local mark

    if self.inflight then
        local name = counted(self, record, address)
        mark = tally.enter(name)

        if not mark then
            self.row[UNSHARED] = self.row[UNSHARED] + 1
        elseif enforced(self) and tally.total(name) > self.inflight then
            tally.leave(mark)
            return false
        end
    end

    if self.rate and record.idle == 0
        and not opens(self, record, address):take(now)
    then
        _M.leave(mark)
        return false
    end

    return true, mark
end


function _M.leave(mark)
    if mark then
        tally.leave(mark)
    end
end


-- forget drops what the dict holds of peers that are in none of the plans.
function _M.forget(self, old, ...)
    for address in pairs(self.rate and old and old.by_address or {}) do
        local used = false

        for _, plan in pairs({ ... }) do
            used = used or plan.by_address[address] ~= nil
        end

        if not used then
            quota.drop(key(self.name, address))
        end
    end
end


return _M
