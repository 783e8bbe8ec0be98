-- A file as publisher: {"UPSTREAM": peers, ...} as JSON. One worker looks at
-- it once a second and publishes what has changed. A file that is missing or
-- wrong changes nothing.

local cjson = require("cjson.safe").new()

local concat = table.concat
local io_open = io.open
local log = ngx.log
local pairs = pairs
local sort = table.sort
local type = type


local ERR = ngx.ERR
local INTERVAL = 1
local MAX_SIZE = 8 * 1024 * 1024


cjson.decode_max_depth(16)


local _M = {}


local watched = {}


local function read(path)
    local file, err = io_open(path, "rb")
    if not file then
        return nil, err
    end

    local data = file:read(MAX_SIZE + 1)
    file:close()

    if data and #data > MAX_SIZE then
        return nil, path .. ": over " .. MAX_SIZE .. " bytes"
    end

    return data or ""
end


local function publish_all(path, upstreams, update)
    local names, errors = {}, {}

    for name in pairs(upstreams) do
        names[#names + 1] = tostring(name)
    end

    sort(names)

    for _, name in ipairs(names) do
        local version, err = update(name, upstreams[name],
                                    { by = "file " .. path })
        if not version then
            errors[#errors + 1] = name .. ": " .. err
        end
    end

    if #errors > 0 then
        return nil, path .. ": " .. concat(errors, "; ")
    end

    return true
end


-- load reads the file once if its contents are new.
local function load(file, update)
    local data, err = read(file.path)
    if not data then
        return nil, err
    end

    if data == file.seen then
        return true
    end

    file.seen = data

    local upstreams
    upstreams, err = cjson.decode(data)

    if type(upstreams) ~= "table" then
        return nil, file.path .. ": invalid JSON: " .. (err or "want an "
                    .. "object from upstream to peers")
    end

    return publish_all(file.path, upstreams, update)
end


local function look(file, update)
    local ok, err = load(file, update)

    if not ok and err ~= file.complaint then
        log(ERR, "spinguard: ", err)
    end

    file.complaint = err
end


-- file registers a file and publishes it at once. Called by the master.
function _M.file(path, update)
    local file = { path = path }
    watched[#watched + 1] = file
    look(file, update)
end


-- start begins to watch, in the first worker only.
function _M.start(update)
    if #watched == 0 or ngx.worker.id() ~= 0 then
        return true
    end

    return ngx.timer.every(INTERVAL, function(premature)
        if premature then
            return
        end

        for _, file in ipairs(watched) do
            look(file, update)
        end
    end)
end


return _M
