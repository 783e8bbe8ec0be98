-- Versions in the shared dict.
--
-- A version is one key, "v:NAME:NUMBER", stored by safe_add: it is there whole
-- or not at all, two publishers cannot take the same number, and a dict that
-- is full refuses it and drops nothing. Each version carries the numbers of
-- the ones that are kept before it, so there is no second thing to keep in
-- step. "h:NAME" is only a hint where to begin the search for the newest; it
-- may be behind. So that the search never meets a gap, the last dropped
-- versions stay as empty keys for a while.

local ledger = require "resty.spinguard.ledger"
local record = require "resty.spinguard.record"
local register = require "resty.spinguard.register"

local ipairs = ipairs
local ngx_now = ngx.now
local ngx_time = ngx.time


local MAX_STEPS = 100000
local EMPTY_KEYS = 64


local _M = { keep = 5, min_ratio = 0.5 }


local dict
local known = {}


function _M.init(shared)
    dict = shared
    register.init(shared)

    local ok, err = dict:safe_add("sequence", 0)
    if not ok and err ~= "exists" then
        return nil, "could not use the shared dict: " .. err
    end

    return true
end


-- sequence changes with each accepted version of any upstream.
function _M.sequence()
    return dict and dict:get("sequence") or 0
end


local function key(name, version)
    return "v:" .. name .. ":" .. version
end


-- head returns the number of the newest version, 0 if there is none.
function _M.head(name)
    local version = dict:get("h:" .. name) or 0
    if version < (known[name] or 0) then
        version = known[name]
    end

    for _ = 1, MAX_STEPS do
        if not dict:get(key(name, version + 1)) then
            break
        end

        version = version + 1
    end

    known[name] = version

    return version
end


function _M.load(name, version)
    local data = dict:get(key(name, version))
    if not data or data == "" then
        return nil, "no such version"
    end

    return record.decode(data)
end


-- newest returns the newest version whole, or nil and whether there are
-- any.
function _M.newest(name)
    for _ = 1, 8 do
        local version = _M.head(name)
        if version == 0 then
            return nil, false
        end

        -- Only a publisher that came in between can have dropped it.
        local found = _M.load(name, version)
        if found then
            return found
        end
    end

    return nil, true
end


-- proven marks a version that has come through a pick.
function _M.proven(name, version)
    dict:safe_add("p:" .. name .. ":" .. version, true)
end


local function is_proven(name, version)
    return dict:get("p:" .. name .. ":" .. version)
end


-- history decides which versions are kept behind a new one, newest first, and
-- which go. The newest proven one that is not in quarantine always stays:
-- a row of poisoned versions must not push it out.
local function history(name, head)
    local all = { head.version }
    for _, version in ipairs(head.history) do
        all[#all + 1] = version
    end

    local now, good = ngx_now(), nil

    for _, version in ipairs(all) do
        local digest = version == head.version and head.digest
        if is_proven(name, version) then
            local old = digest and head or _M.load(name, version)
            if old and not ledger.holds(name, version, old.digest, now) then
                good = version
                break
            end
        end
    end

    local kept, dropped = {}, {}

    for _, version in ipairs(all) do
        local last = #kept == _M.keep - 1
        local reserved = good and version > good and last

        if #kept < _M.keep and not reserved then
            kept[#kept + 1] = version
        else
            dropped[#dropped + 1] = version
        end
    end

    return kept, dropped
end


local function drop(name, versions, newest)
    for _, version in ipairs(versions or {}) do
        if version > newest - EMPTY_KEYS then
            dict:safe_set(key(name, version), "")
        else
            dict:delete(key(name, version))
        end

        dict:delete("p:" .. name .. ":" .. version)
    end
end


local function sweep(name, newest)
    local old = key(name, newest - EMPTY_KEYS)
    if dict:get(old) == "" then
        dict:delete(old)
    end
end


local function enough(head, peers, force)
    local old, new = #head.peers, #peers

    if force or new >= old * _M.min_ratio then
        return true
    end

    return nil, "peers: only " .. new .. " of " .. old .. " are left, less "
                .. "than min_ratio " .. _M.min_ratio
                .. "; publish with force if that is meant", "min_ratio"
end


local function full(err)
    return nil, "could not store the version: " .. err
                .. "; enlarge the lua_shared_dict", "dict_full"
end


local function store_after(name, head, new)
    new.version = head and head.version + 1 or 1
    new.history, new.dropped = {}, {}

    if head then
        new.history, new.dropped = history(name, head)
    end

    new.changed = { from = head and head.version or 0,
                    text = record.brief(head, new) }

    local ok, err = dict:safe_add(key(name, new.version), record.encode(new))

    if ok then
        if (dict:get("h:" .. name) or 0) < new.version then
            dict:safe_set("h:" .. name, new.version)
        end

        dict:incr("sequence", 1)
        if new.force then
            register.forced()
        end

        drop(name, new.dropped, new.version)
        drop(name, head and head.dropped, new.version)
        sweep(name, new.version)
    end

    return ok, err
end


-- publish stores the peers as the next version. Peers that are the same as
-- those of the newest version make no new one. It returns the number of the
-- version, or nil, message, reason.
function _M.publish(name, peers, opts)
    local new = {
        peers = peers,
        digest = record.digest(peers),
        by = opts.by,
        at = ngx_time(),
        force = opts.force and true or nil,
    }

    for _ = 1, MAX_STEPS do
        local head, any = _M.newest(name)

        if not head and any then
            break
        end

        if not head then
            local ok, err = register.add(name)
            if not ok then
                return full(err)
            end

        else
            if head.digest == new.digest then
                return head.version, nil, "unchanged"
            end

            local ok, err, reason = enough(head, peers, opts.force)
            if not ok then
                return nil, err, reason
            end
        end

        local ok, err = store_after(name, head, new)
        if ok then
            return new.version
        end

        if err ~= "exists" then
            return full(err)
        end
    end

    return nil, "could not store the version: too many other publishers",
           "busy"
end


return _M
