-- SPDX-License-Identifier: Apache-2.0
-- Coroutines, tables, strings, garbage, files and a child process in Lua.
local function section(name) print("--- " .. name) end

section "coroutines"
local function walk(n)
  return coroutine.wrap(function()
    for i = 1, n do coroutine.yield(i * i) end
  end)
end
local sum = 0
for v in walk(20000) do sum = sum + v end
print(sum)
local producers = {}
for i = 1, 500 do
  producers[i] = coroutine.create(function(a)
    while true do a = coroutine.yield(a + i) end
  end)
end
local total = 0
for round = 1, 20 do
  for _, p in ipairs(producers) do
    local _, v = coroutine.resume(p, round)
    total = total + v
  end
end
print(total)

section "tables and strings"
local t = {}
for i = 1, 30000 do t[i] = (i * 7919) % 30011 end
table.sort(t)
print(t[1], t[15000], t[30000])
local words = {}
for w in ("the quick brown fox the lazy dog the end"):gmatch("%a+") do
  words[w] = (words[w] or 0) + 1
end
print(words.the, words.fox)
print(("x"):rep(10, ","), ("%5.2f|%q"):format(math.pi, "a\nb"))
print(string.pack(">I4s2", 7, "abc"):byte(1, -1))
print(2^53, 7 // 2, -7 // 2, 7 % -3, 1 << 40, math.maxinteger + 1)

section "garbage"
local before = collectgarbage("count")
for i = 1, 300 do
  local big = {}
  for j = 1, 500 do big[j] = { j, tostring(j) } end
end
collectgarbage()
print(collectgarbage("count") < before * 2 + 1000)
local weak = setmetatable({}, { __mode = "v" })
weak[1] = {}
collectgarbage()
print(#weak)
local closed = 0
do
  local guard <close> = setmetatable({}, { __close = function() closed = 1 end })
end
print(closed)

section "errors"
print((pcall(error, { code = 3 })), select(2, pcall(function() return nil + 1 end)))
local function deep(n) return n == 0 and 0 or 1 + deep(n - 1) end
print(deep(10000), pcall(deep, 1e7) == false)

section "files and processes"
local f = assert(io.open("out.txt", "w"))
for i = 1, 5000 do f:write("line ", i, "\n") end
f:close()
local n = 0
for line in io.lines("out.txt") do n = n + #line end
print(n, assert(io.open("out.txt")):seek("end"))
print(io.open("nowhere"))
local p = io.popen("seq 1 100 | tail -n 2")
print(p:read("a"))
print(p:close())
print(os.execute("exit 5"))
print(os.rename("out.txt", "moved.txt"), os.remove("moved.txt"))
section "end"
