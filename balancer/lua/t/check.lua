-- A few words for the specs: run inside nginx, in init_by_lua.

local _M = { failures = 0, checks = 0 }


function _M.ok(value, ...)
    _M.checks = _M.checks + 1

    if not value then
        _M.failures = _M.failures + 1
        if _M.failures <= 20 then
            print("not ok: ", ...)
        end
    end

    return value
end


function _M.equal(got, want, ...)
    return _M.ok(got == want, tostring(got), ", want ", tostring(want), ": ",
                 ...)
end


-- steps runs f and fails it after so many instructions. Counting hooks do not
-- fire in compiled code, so this is for runs with the JIT off.
function _M.steps(limit, f, ...)
    if jit.status() then
        return pcall(f, ...)
    end

    debug.sethook(function() error("over " .. limit .. " steps", 0) end, "",
                  limit)
    local ok, a, b = pcall(f, ...)
    debug.sethook()

    return ok, a, b
end


return _M
