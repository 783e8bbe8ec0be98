// The agent's pages in a real browser. web/browser_test.go serves them, moves
// the workers and publishes an event every 300 ms.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import axe from "axe-core";

const { BASE: base, INCIDENT: id, CHROMIUM: executablePath, SCREENSHOTS: screenshots } = process.env;
const pages = ["/", "/incidents", "/quarantines", "/feed", "/settings", `/incidents/${id}/`];
const desktop = { width: 1280, height: 900 };
const phone = { width: 360, height: 740 };

let browser;
before(async () => { browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] }); });
after(() => browser?.close());

// open shows a page and fails at the end of the test if the browser complained
// (its console, an exception, the content security policy) or asked another
// server for anything.
async function open(t, path, options = {}) {
  const context = await browser.newContext({ viewport: desktop, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) wrong.push(`console: ${m.text()}`); });
  page.on("pageerror", (e) => wrong.push(`exception: ${e}`));
  page.on("dialog", (d) => { wrong.push(`dialog: ${d.message()}`); d.dismiss(); });
  page.on("request", (r) => { if (!r.url().startsWith(base + "/") && !r.url().startsWith("data:")) wrong.push(`request: ${r.url()}`); });
  t.after(async () => {
    await context.close();
    assert.deepEqual(wrong, []);
  });
  const answer = await page.goto(base + path);
  assert.equal(answer.status(), 200, path);
  return page;
}

test("workers and their spark lines move without a reload", async (t) => {
  const page = await open(t, "/");
  const row = page.getByRole("row").filter({ hasText: "nginx-main 2" });
  await row.getByText("runaway", { exact: true }).waitFor();
  assert.match(await row.innerText(), /GET \/shop\/cart\/17/);
  const line = row.locator("svg.stall polyline");
  const first = await line.getAttribute("points");
  await page.waitForFunction((old) => document.querySelector(".w-runaway svg.stall polyline").getAttribute("points") !== old, first);
  await row.getByRole("link", { name: "incident" }).click();
  await page.waitForURL(`${base}/incidents/${id}/`);
});

test("events come by themselves, as text", async (t) => {
  const page = await open(t, "/feed");
  const newest = page.locator("ol.feed li").first();
  await newest.filter({ hasText: "tick" }).waitFor();
  const text = await newest.innerText();
  await page.waitForFunction((old) => document.querySelector("ol.feed li").innerText !== old, text);
  assert.equal(await page.locator("ol.feed b#x").count(), 0, "an event's text became an element");
});

test("incidents are listed, filtered and turned over", async (t) => {
  const page = await open(t, "/incidents?limit=2");
  assert.equal(await page.locator("table.incidents tbody tr").count(), 2);
  await page.getByRole("link", { name: "Older incidents" }).click();
  await page.getByRole("link", { name: "Newest" }).waitFor();
  assert.equal(await page.locator("table.incidents tbody tr").count(), 1);
  await page.getByLabel("Verdict").selectOption("blocked");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.waitForURL(/verdict=blocked/);
  assert.equal(await page.locator("table.incidents tbody tr").count(), 1);
  await page.locator("table.incidents").getByText("blocked", { exact: true }).waitFor();
});

test("a report tells the story first, then shows flame graph, difference and timeline", async (t) => {
  const page = await open(t, `/incidents/${id}/`);
  assert.match(await page.locator("main > :first-child").innerText(), /answered again after/);
  for (const step of ["suspected", "confirmed", "captured", "quarantined", "evicted", "recovered"]) {
    await page.getByRole("rowheader", { name: step }).waitFor();
  }
  await page.getByText("gcd (wrr.lua:12)").first().waitFor();
  for (const title of ["Flame graph of the incident", "Flame graph of the difference to the baseline"]) {
    const frame = page.frameLocator(`iframe[title="${title}"]`);
    await frame.locator("svg g, svg rect").first().waitFor({ state: "attached" });
  }
  // The frame's own script works in its sandbox: a click looks closer.
  const flame = page.frameLocator('iframe[title="Flame graph of the incident"]');
  const root = flame.locator("svg text").filter({ hasText: /^all$/ });
  const before = await root.evaluate((e) => e.parentElement.outerHTML);
  await flame.locator("svg.frames g", { hasText: "lua_pcall" }).first().locator("rect").click();
  assert.ok(before !== await root.evaluate((e) => e.parentElement.outerHTML), "nothing happened on a click");
});

test("every link of an incident leads somewhere", async (t) => {
  const page = await open(t, `/incidents/${id}/`);
  const links = await page.locator("a[href]").evaluateAll((list) => list.map((a) => a.href));
  const names = links.map((l) => l.replace(base, ""));
  for (const want of ["report.html", "flamegraph.svg", "diff.svg", "profile.pb.gz", "baseline.pb.gz", "incident.json", "pprof/flamegraph", "export"]) {
    assert.ok(names.some((n) => n.endsWith(want)), `no link to ${want} in ${names}`);
  }
  for (const link of new Set(links.filter((l) => !l.includes("#")))) {
    const answer = await page.request.get(link);
    assert.equal(answer.status(), 200, link);
  }
  const frames = await page.locator("iframe").evaluateAll((list) => list.map((f) => f.src));
  assert.equal(frames.length, 2);
});

test("pprof's own page shows the profile", async (t) => {
  const page = await open(t, `/incidents/${id}/pprof/flamegraph`);
  await page.getByText("gcd").first().waitFor();
  await page.goto(`${base}/incidents/${id}/pprof/top`);
  await page.getByText("gcd").first().waitFor();
});

test("a quarantine is lifted with a reason and the token, and with nothing less", async (t) => {
  const page = await open(t, "/quarantines");
  const lift = page.getByRole("row").filter({ hasText: "shop version 2" });
  await lift.getByText("Lift…").click();
  await lift.getByRole("button", { name: "Lift now" }).click();
  assert.equal(await lift.getByLabel("Reason").evaluate((i) => i.validity.valueMissing), true, "no reason was asked for");
  await lift.getByLabel("Reason").fill("version 3 is published");
  const refused = await page.request.post(`${base}/quarantines/q1/lift`, { form: { reason: "x", token: "wrong" }, headers: { origin: base } });
  assert.equal(refused.status(), 403);
  await lift.getByLabel("Token").fill("s3cret");
  await lift.getByRole("button", { name: "Lift now" }).click();
  await page.getByText("Nothing is in quarantine.").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.getItem("token")), "s3cret"); // typed once per tab
});

test("the settings in force are shown", async (t) => {
  const page = await open(t, "/settings");
  await page.getByText("runaway: 300ms").waitFor();
});

test("the keyboard is enough", async (t) => {
  const page = await open(t, "/incidents");
  await page.keyboard.press("Tab");
  assert.equal(await page.locator(":focus").innerText(), "To the content");
  const box = await page.locator(":focus").boundingBox();
  assert.ok(box.x >= 0 && box.y >= 0, "the skip link is not seen when it has the focus");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.equal(await page.locator(":focus").getAttribute("name"), "verdict", "after the skip link comes the content");
  await page.goto(base + "/");
  for (let i = 0; i < 4; i++) await page.keyboard.press("Tab");
  assert.equal(await page.locator(":focus").innerText(), "Incidents");
  const outline = await page.locator(":focus").evaluate((e) => getComputedStyle(e).outlineStyle);
  assert.notEqual(outline, "none", "the focus is not seen");
  await page.keyboard.press("Enter");
  await page.waitForURL(base + "/incidents");
});

// accessible lets axe look at a page. It is not a script of the page, so that
// the page's policy stays in force.
async function accessible(page, path) {
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => axe.run(document, { iframes: false, resultTypes: ["violations"] }));
  assert.deepEqual(found.violations.map((v) => `${path}: ${v.id}: ${v.nodes.map((n) => n.target).join(", ")}`), []);
}

// Phone and desktop, dark and light: nothing sticks out, and axe finds nothing.
for (const colorScheme of ["light", "dark"]) {
  for (const [device, viewport] of Object.entries({ phone, desktop })) {
    test(`${device}, ${colorScheme}`, async (t) => {
      const page = await open(t, "/", { viewport, colorScheme });
      const [r, g, b] = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
      assert.equal(r + g + b < 384, colorScheme === "dark", `background ${r},${g},${b}`);
      for (const path of pages) {
        await page.goto(base + path);
        const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${path} is ${wide} px wider than the window`);
        if ((device === "phone") === (colorScheme === "dark")) await accessible(page, path); // each size and each colour once
        if (screenshots) await page.waitForTimeout(500); // frames are painted late
        if (screenshots) await page.screenshot({ path: `${screenshots}/${device}-${colorScheme}${path.replace(/\W+/g, "-")}.png`, fullPage: true });
      }
    });
  }
}
