-- The admin handler: JSON over a location that only the machine itself can
-- reach.

local cjson = require("cjson.safe").new()
local lax = require("cjson.safe").new()
local ledger = require "resty.spinguard.ledger"
local metrics = require "resty.spinguard.metrics"
local register = require "resty.spinguard.register"
local store = require "resty.spinguard.store"
local upstream = require "resty.spinguard.upstream"

local ngx = ngx
local type = type


local MAX_BODY = 8 * 1024 * 1024
local LOCAL = { ["127.0.0.1"] = true, ["::1"] = true, ["unix:"] = true }
-- An empty table is an object to cjson; only OpenResty's can be told better.
local EMPTY_LIST = "\1[]"
local FIELDS = { peers = true, by = true, force = true }
local STATUS = { dict_full = 507, busy = 503 }


local _M = {}


cjson.decode_invalid_numbers(false)
cjson.decode_max_depth(16)
lax.decode_max_depth(16)


local function answer(status, body)
    ngx.status = status
    ngx.header["Content-Type"] = "application/json"
    ngx.say((cjson.encode(body):gsub('"\\u0001%[%]"', "[]")))
end


local function refuse(status, text, reason)
    return answer(status, { error = text, reason = reason })
end


local function body()
    local length = tonumber(ngx.var.http_content_length)
    if length and length > MAX_BODY then
        return nil, "body: over " .. MAX_BODY .. " bytes", "too_big"
    end

    ngx.req.read_body()

    local data = ngx.req.get_body_data()
    local path = not data and ngx.req.get_body_file()

    if path then
        local file, err = io.open(path, "rb")
        if not file then
            return nil, "could not read the body: " .. err, "body"
        end

        data = file:read(MAX_BODY + 1)
        file:close()
    end

    if not data or data == "" then
        return nil, "body: empty; want a list of peers as JSON", "json"
    end

    if #data > MAX_BODY then
        return nil, "body: over " .. MAX_BODY .. " bytes", "too_big"
    end

    return data
end


-- parse is strict; only to name the peer it looks again with NaN allowed.
local function parse(data)
    local value, err = cjson.decode(data)
    if value ~= nil then
        return value
    end

    value = lax.decode(data)
    if value ~= nil then
        return value, nil, err
    end

    return nil, "invalid JSON: " .. err, "json"
end


-- take returns peers and options from a body: either the peers themselves,
-- or an object with peers, by and force.
local function take(value)
    if type(value) ~= "table" then
        return nil, "body: want a list of peers or an object", "json"
    end

    if value.peers == nil then
        return value, {}
    end

    for field in pairs(value) do
        if not FIELDS[field] then
            return nil, "body: unknown field " .. tostring(field),
                   "unknown_field"
        end
    end

    return value.peers, { by = value.by, force = value.force == true }
end


local function publish(name, update)
    local data, err, reason = body()
    if not data then
        register.refused(reason)
        return refuse(400, err, reason)
    end

    local value, invalid
    value, err, invalid = parse(data)
    if value == nil then
        register.refused("json")
        return refuse(400, err, "json")
    end

    local peers, opts
    peers, opts, reason = take(value)
    if not peers then
        register.refused(reason)
        return refuse(400, opts, reason)
    end

    if type(opts.by) ~= "string" then
        opts.by = "admin " .. ngx.var.remote_addr
    end

    opts.invalid_json = invalid

    local version
    version, err, reason = update(name, peers, opts)
    if not version then
        return refuse(STATUS[reason] or 422, err, reason)
    end

    return answer(200, { upstream = name, version = version,
                         unchanged = reason == "unchanged" or nil })
end


local function peer_list(peers)
    local list = {}

    for i, peer in ipairs(peers) do
        list[i] = { address = peer.address, weight = peer.weight }
    end

    return list
end


local function show(name)
    local all = upstream.versions(name)
    if not all then
        return refuse(404, "upstream " .. name .. ": nothing was published",
                      "unknown")
    end

    for _, version in ipairs(all.versions) do
        version.peers = #version.peers > 0 and peer_list(version.peers)
                        or EMPTY_LIST
        version.dropped = nil
        version.history = nil
        version.changed = nil

        if #version.changes == 0 then
            version.changes = EMPTY_LIST
        end
    end

    return answer(200, all)
end


local function list()
    local names = register.names()
    table.sort(names)

    return answer(200, { upstreams = #names > 0 and names
                                     or EMPTY_LIST })
end


local function quarantines()
    upstream.look(ngx.now())

    local found, now = {}, ngx.now()

    for _, e in ipairs(ledger.entries) do
        if e.until_ms / 1000 > now then
            found[#found + 1] = e
        end
    end

    return answer(200, { quarantines = #found > 0 and found
                                       or EMPTY_LIST })
end


-- numbers is the scrape endpoint for Prometheus.
local function numbers()
    local names, now = register.names(), ngx.now()
    local lines = metrics.render(names)
    local force = 0

    upstream.look(now)
    for _, e in ipairs(ledger.entries) do
        force = force + (e.until_ms / 1000 > now and 1 or 0)
    end

    local function add(name, kind, help)
        lines[#lines + 1] = "# HELP spinguard_balancer_" .. name .. " "
                            .. help
        lines[#lines + 1] = "# TYPE spinguard_balancer_" .. name .. " "
                            .. kind
    end

    add("refused_updates_total", "counter", "Refused updates by reason.")
    for _, refused in ipairs(register.refusals()) do
        lines[#lines + 1] = 'spinguard_balancer_refused_updates_total{reason="'
                            .. refused[1] .. '"} ' .. refused[2]
    end

    add("forced_updates_total", "counter", "Updates published by force.")
    lines[#lines + 1] = "spinguard_balancer_forced_updates_total "
                        .. register.forces()

    add("quarantines", "gauge", "Quarantines in force.")
    lines[#lines + 1] = "spinguard_balancer_quarantines " .. force

    add("published_version", "gauge", "Newest version of an upstream.")
    for i, name in ipairs(names) do
        if i < metrics.UPSTREAMS then
            lines[#lines + 1] = 'spinguard_balancer_published_version'
                .. '{upstream="' .. name .. '"} ' .. store.head(name)
        end
    end

    ngx.header["Content-Type"] = "text/plain; version=0.0.4"
    ngx.say(table.concat(lines, "\n"))
end


local function allowed(opts)
    if opts.token then
        return ngx.var.http_authorization == "Bearer " .. opts.token
    end

    return LOCAL[ngx.var.remote_addr] or false
end


-- handle answers one request of the admin location.
function _M.handle(update, opts)
    if not allowed(opts) then
        return refuse(403, "admin: only from the machine itself, or with the "
                           .. "token", "forbidden")
    end

    local method, uri = ngx.req.get_method(), ngx.var.uri
    local name = uri:match("/upstreams/([^/]+)$")

    if name and (method == "PUT" or method == "POST") then
        return publish(name, update)
    end

    if method ~= "GET" then
        return refuse(405, "method " .. method .. ": GET, or PUT on "
                           .. "/upstreams/NAME", "method")
    end

    if name then
        return show(name)
    end

    if uri:find("/upstreams/?$") then
        return list()
    end

    if uri:find("/quarantines/?$") then
        return quarantines()
    end

    if uri:find("/metrics/?$") then
        return numbers()
    end

    return refuse(404, "path: want /upstreams, /upstreams/NAME, "
                       .. "/quarantines or /metrics", "path")
end


return _M
