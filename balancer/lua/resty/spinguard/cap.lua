-- A cap on the instructions of a user's picker. Counting hooks do not fire in
-- JIT-compiled code, so the compiler is switched off for the picker's own
-- functions: those that can be reached through its fields, metatables and
-- upvalues. Code beyond (in C, or loaded while it runs) is not capped.

local debug = debug
local error = error
local jit = jit
local pairs = pairs
local pcall = pcall
local type = type


local MAX_VISITS = 10000


local _M = {}


local function push(todo, seen, value)
    local kind = type(value)

    if (kind == "function" or kind == "table") and not seen[value]
        and value ~= _G and value ~= package.loaded
    then
        seen[value] = true
        todo[#todo + 1] = value
    end
end


local function visit_function(todo, seen, f)
    -- Not for functions in C, which have no code to compile.
    if debug.getinfo(f, "S").what == "C" then
        return
    end

    jit.off(f, true)

    for i = 1, 255 do
        local name, value = debug.getupvalue(f, i)
        if not name then
            break
        end

        push(todo, seen, value)
    end
end


local function visit_table(todo, seen, t)
    for _, value in pairs(t) do
        push(todo, seen, value)
    end

    push(todo, seen, debug.getmetatable(t))
end


-- interpret switches the compiler off for what a picker can reach.
function _M.interpret(picker)
    local todo, seen = {}, {}
    push(todo, seen, picker)

    for _ = 1, MAX_VISITS do
        local value = todo[#todo]
        if not value then
            break
        end

        todo[#todo] = nil

        if type(value) == "function" then
            visit_function(todo, seen, value)
        else
            visit_table(todo, seen, value)
        end
    end
end


-- text returns what a picker raised as a text; it may be anything, and then
-- only its type is safe to name.
function _M.text(err)
    return type(err) == "string" and err or "raised a " .. type(err)
end


-- call is pcall with a cap. It raises inside the picker; should the picker
-- catch that, at its very next instruction again, so that no loop around a
-- pcall survives it.
local function call(steps, f, ...)
    local stopped = false

    local function stop()
        if stopped and debug.getinfo(2, "f").func == call then
            return  -- the picker is over
        end

        stopped = true
        debug.sethook(stop, "", 1)
        error("over " .. steps .. " instructions", 0)
    end

    debug.sethook(stop, "", steps)
    local ok, a, b = pcall(f, ...)
    debug.sethook()

    return ok, a, b
end


-- The end of call must run with the hook, so it is never compiled.
jit.off(call)


_M.call = call


return _M
