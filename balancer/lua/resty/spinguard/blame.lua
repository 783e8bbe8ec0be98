-- Who is to blame when tries have failed: the peers or the request? A pure
-- function of what happened.
--
--  * A peer that could not be connected is to blame: no request can cause it.
--  * A peer that failed where another answered the same request is to blame.
--  * A request that failed at two peers and more, all of which have lately
--    answered others, is to blame itself: no peer is.
--  * Else the peers are, weakly: several clients and several requests must
--    say the same.

local _M = {}


-- failed says whether a peer failed in a try. One over an idle connection that
-- the peer had closed (nginx then tries again by itself) says nothing of it.
function _M.failed(try)
    if try.stale then
        return false
    end

    return try.outcome == "failure" or try.outcome == "timeout"
           or try.outcome == "unconnected"
end


-- judge takes the tries of one request, in order, each with address, outcome
-- and lately (the peer has lately answered another client). It returns the
-- list of failures to count and whether the request is poison.
function _M.judge(tries, client, shape)
    local answered, suspects, innocent = false, {}, 0
    local known = {}

    for _, try in ipairs(tries) do
        if try.outcome == "success" then
            answered = true

        elseif _M.failed(try) and not known[try.address] then
            known[try.address] = true
            suspects[#suspects + 1] = try

            if try.outcome ~= "unconnected" and try.lately then
                innocent = innocent + 1
            end
        end
    end

    local poison = not answered and innocent >= 2 and innocent == #suspects
    local failures = {}

    for _, try in ipairs(poison and {} or suspects) do
        failures[#failures + 1] = {
            address = try.address,
            kind = try.outcome,
            client = client,
            shape = shape,
            compared = answered,
        }
    end

    return failures, poison
end


return _M
