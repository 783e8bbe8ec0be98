-- Says where it is, as Lua's own traceback has it, and stays there.
local shop = { name = "carts" }

local function stay(a, b, text, flag, ...)
    local half, none = a / 2, nil; io.write(debug.traceback("", 1), "\nready\n"); io.stdout:flush(); while flag do local _ = half end
    return none, b, text
end

function shop:weigh(list)
    table.sort(list, function(x, y)
        stay(3, 0 / 0, "first\0", true, x, y)
        return x < y
    end)
end

local depth = 0
local function recurse(n)
    depth = depth + 1
    if n == 0 then
        shop:weigh({ 2, 1 })
    else
        recurse(n - 1)
    end
    return n
end

local function tail(n)
    return recurse(n)
end

function pick_peer(upstream)
    local ok, err = pcall(function()
        local proxy = setmetatable({}, { __index = function(_, key)
            return tail(#key - 4) + 1
        end })
        return proxy.weight
    end)
    return ok, err, upstream
end

local co = coroutine.wrap(function(...)
    shop.handler = function(a)
        coroutine.yield(a)
        pick_peer("carts")
    end
    shop.handler(...)
    return 1
end)

co(1)
co(2)
