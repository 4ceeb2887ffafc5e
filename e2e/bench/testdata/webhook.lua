-- Sends one webhook repeatedly. Each has a random GUID, because errand does not write a known one twice, and
-- because GitHub's are in no order.
local function read(name)
  local file = assert(io.open(assert(os.getenv(name), name .. " is not set"), "rb"))
  local data = file:read("*a")
  file:close()
  return data
end

wrk.method = "POST"
wrk.body = read("ERRAND_BENCH_BODY")
wrk.headers["Content-Type"] = "application/json"
wrk.headers["X-GitHub-Event"] = "issue_comment"
wrk.headers["X-Hub-Signature-256"] = os.getenv("ERRAND_BENCH_SIGNATURE")

local random = assert(io.open("/dev/urandom", "rb"))
local a, b, c, d = random:read(4):byte(1, 4)
random:close()
math.randomseed(((a * 256 + b) * 256 + c) * 256 + d)
local run = string.format("%02x%02x-4%02x0-8%02x0", a, b, c, d)

local n = 0

function request()
  n = n + 1
  wrk.headers["X-GitHub-Delivery"] = string.format("%08x-%s-%012x", math.random(0, 2147483647), run, n)
  return wrk.format()
end
