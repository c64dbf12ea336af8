// Opens each page that is named in headless Chromium, and looks at all that it draws.
// node check.mjs CHROMIUM PAGE... : a line for each complaint, and a last line of what was seen.
import { chromium } from "playwright-core";

const [executablePath, ...pages] = process.argv.slice(2);
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const seen = { pages: 0, charts: 0, heats: 0, ranges: 0, tables: 0, hovers: 0, toggles: 0, zooms: 0, searches: 0, passages: 0, words: 0, logs: 0 };
const complaints = [];

// In the page: how many colours a canvas has.
const colours = canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let i = 0; i < data.length && found.size < 9; i += 4) found.add(data[i] << 24 | data[i + 1] << 16 | data[i + 2] << 8 | data[i + 3]);
  return found.size;
};

// So many of some at most, evenly apart, the first and the last among them.
const spread = (all, most) => all.length <= most ? all : Array.from({ length: most }, (_, n) => all[Math.round(n * (all.length - 1) / (most - 1))]);

// All charts in one call: of a page with a hundred each call of its own took seconds.
async function plots(page, say, where) {
  const all = await page.evaluate(`(() => {
    const colours = ${colours};
    return [...document.querySelectorAll(".plot")].map(plot => {
      const canvases = [...plot.querySelectorAll("canvas")];
      return [plot.dataset.plot, canvases.length, canvases.length === 1 ? colours(canvases[0]) : 0];
    });
  })()`);
  for (const [id, canvases, found] of all) {
    if (canvases !== 1) say(`${where}: ${id} has ${canvases} canvases`);
    else if (found < 3) say(`${where}: ${id} is blank`);
  }
}

// Parts that are cut off, and headings that break inside of words.
async function broken(page, say, where) {
  const cut = await page.evaluate(() => [...document.querySelectorAll(".range .verdict, .range .dot, .range .ring")].filter(one => {
    const box = one.getBoundingClientRect();
    return box.left < 0 || box.right > document.documentElement.clientWidth;
  }).length);
  if (cut) say(`${where}: ${cut} marks or verdicts are cut off`);
  const words = await page.evaluate(() => {
    const pen = document.createElement("canvas").getContext("2d");
    return [...document.querySelectorAll("figure > .scroll thead th")].filter(head => {
      const style = getComputedStyle(head), inside = head.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
      pen.font = style.font;
      const widest = Math.max(...head.textContent.split(/\s+/).filter(word => word.length < 20).map(word => pen.measureText(word).width), 0);
      return head.clientWidth && widest > inside + 2;
    }).map(head => head.textContent);
  });
  if (words.length) say(`${where}: headings break inside of words: ${words}`);
  const thin = await page.evaluate(() => [...document.querySelectorAll("figure td.t")].filter(cell => cell.clientWidth && cell.textContent.length > 9 && cell.clientWidth < 50).length);
  if (thin) say(`${where}: ${thin} columns are a few letters wide`);
}

async function chart(page, plot, say) {
  const id = await plot.getAttribute("data-plot");
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const values = () => plot.locator(".u-legend .u-series .u-value").allTextContents();
  const shown = await values();
  if (shown[0] === "" || shown.every(text => text === "")) say(`${id}: hovering shows no values: ${shown}`);
  seen.hovers++;
  const head = plot.locator(".u-legend .u-series th").nth(1);
  const isOff = () => plot.locator(".u-legend .u-series").nth(1).evaluate(row => row.classList.contains("u-off"));
  await head.click();
  if (!await isOff()) say(`${id}: a click on the legend hides nothing`);
  await head.focus();
  await page.keyboard.press("Enter");
  if (await isOff()) say(`${id}: a key on the legend shows nothing`);
  seen.toggles++;
  if (await plot.locator(".u-legend .u-off").count()) say(`${id}: something is still hidden`);
  const reset = plot.locator("button.reset");
  await page.mouse.move(box.x + box.width * .3, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * .6, box.y + 40, { steps: 4 });
  await page.mouse.up();
  if (!await reset.isVisible()) say(`${id}: dragging does not zoom`);
  else {
    await reset.click();
    if (await reset.isVisible()) say(`${id}: zooming out does not`);
  }
  seen.zooms++;
  seen.charts++;
}

// The first screen answers: a line, what it rests on, and no word of the other kind.
async function head(page, say) {
  const lead = await page.locator("header .lead").first();
  if (!await lead.count() || (await lead.innerText()).trim().length < 8) return say("it does not begin with a line that answers");
  const box = await lead.boundingBox();
  if (box.y > 320) say(`the answer stands ${box.y} pixels down`);
  const trust = page.locator("header .trust").first();
  if (!await trust.count() || !/^Rests on: ./.test(await trust.innerText())) say("nothing says what the answer rests on");
  if (/[\ue000-\ue002]/.test(await page.evaluate(() => document.body.innerText))) say("a sign of the switch is shown");
  const about = page.locator("header details.about");
  if (await about.evaluate(one => one.open)) say("notes are not folded away");
}

// The switch between misses and hits changes every text and chart.
async function words(page, say) {
  const word = page.locator("#word");
  if (!await word.count()) return;
  const both = () => page.evaluate(() => [".w-misses", ".w-hits"].map(kind =>
    [...document.querySelectorAll(kind)].filter(one => one.getClientRects().length).length));
  const [misses, hits] = await both();
  const joined = await page.evaluate(() => document.body.innerText.match(/.*misseshits.*/)?.[0]);
  if (joined) say(`it has both words at once: ${joined}`);
  if (!misses || hits) say(`it shows ${misses} texts of misses and ${hits} of hits at first`);
  await word.click();
  const [less, more] = await both();
  if (less || !more) say(`the switch leaves ${less} texts of misses and shows ${more} of hits`);
  await plots(page, say, "hits");
  await word.click();
  seen.words++;
}

// An axis of sizes that span a decade can be logarithmic, and even again.
async function logs(page, say) {
  for (const plot of await page.locator(".plot:has(.axis-switch)").all()) {
    await plot.scrollIntoViewIfNeeded();
    await plot.locator(".axis-switch").click();
    if (await plot.locator("canvas").first().evaluate(colours) < 3) say("a logarithmic axis draws nothing");
    if (await plot.locator(".axis-switch").innerText() !== "Even axis") say("the axis does not say how it goes back");
    await plot.locator(".axis-switch").click();
    seen.logs++;
  }
}

async function heat(page, plot, say) {
  const id = await plot.getAttribute("data-plot");
  const canvas = plot.locator("canvas");
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  if (box.width < 200) say(`${id}: is ${box.width} wide`);
  await page.mouse.move(box.x + box.width / 3, box.y + box.height / 3);
  const told = () => plot.locator(".readout").textContent();
  const first = await told();
  if (!/: [\d,.]+ /.test(first)) say(`${id}: hovering says ${JSON.stringify(first)}`);
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  if (await told() === first) say(`${id}: keys move nothing`);
  seen.heats++;
}

const browser = await chromium.launch({ executablePath, args });
async function look(file) {
  const say = what => complaints.push(`${file}: ${what}`);
  const context = await browser.newContext({ viewport: { width: 1000, height: 900 } });
  const page = await context.newPage();
  const url = `file://${file}`;
  page.on("console", message => ["error", "warning"].includes(message.type())
    // The warning is from this test itself, which looks at canvases.
    && !message.text().includes("willReadFrequently") && say(`console: ${message.text()}`));
  page.on("pageerror", error => say(`error: ${error.message}`));
  page.on("dialog", dialog => { say(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", request => request.url() !== url && !request.url().startsWith("data:") && say(`request: ${request.url()}`));
  await page.goto(url);
  if (await page.evaluate(() => "hostile" in window)) say("a name was run");
  for (const bad of await page.locator("body > script:not([type])").all())
    if ((await bad.textContent()).includes("hostile")) say("a name is a script");
  await plots(page, say, "light");
  await head(page, say);
  await words(page, say);
  await logs(page, say);
  // All charts are drawn; hands try a dozen of a page, for they have one script.
  for (const plot of spread(await page.locator(".plot").all(), 12))
    await (await plot.locator("canvas.heat").count() ? heat : chart)(page, plot, say);
  for (const ranges of await page.locator(".ranges:visible").all()) {
    const box = await ranges.boundingBox();
    if (!box || box.height < 30 || !await ranges.locator(".dot, .ring").count()) say("a drawing of ranges is empty");
    seen.ranges++;
  }
  const unnamed = await page.evaluate(() => JSON.parse(document.getElementById("refault-charts").textContent)
    .filter(({ kind, data }) => kind === "heat" && data.borders.length).filter(({ id, data }) => {
      const largest = data.borders.reduce((a, b) => b[2] > a[2] ? b : a)[1];
      return ![...document.querySelectorAll(`[data-plot="${CSS.escape(id)}"] .heatnames span`)].some(span => span.textContent === largest);
    }).map(({ id }) => id));
  for (const id of unnamed) say(`${id}: the largest object has no name`);
  for (const figure of await page.locator("figure").all()) {
    if (!await figure.locator("table:not(.u-legend) tbody tr").count()) say(`${await figure.getAttribute("id")}: no table`);
    seen.tables++;
  }
  const dead = await page.locator("a[href]").evaluateAll(links => links.map(link => link.getAttribute("href"))
    .filter(to => !to.startsWith("#") || !document.getElementById(to.slice(1))));
  for (const to of dead) say(`${to} leads nowhere`);
  const passage = page.locator("figure a.doc").first();
  if (await passage.count()) {
    const to = await passage.getAttribute("href");
    if (await page.locator("#documentation details").evaluate(one => one.open)) say("the documentation is not folded away");
    await passage.click();
    if (!await page.locator("#documentation details").evaluate(one => one.open)) say("a link does not unfold the documentation");
    if (!await page.locator(`article${to} p, article${to} table`).count()) say(`${to}: the passage is empty`);
    if (await page.locator(`article${to}`).evaluate(article => article !== document.querySelector(":target"))) say(`${to}: is not the target`);
    seen.passages++;
  }
  for (const input of await page.locator("input[type=search]").all()) {
    const rows = input.locator("xpath=ancestor::figure").locator("tbody tr:visible");
    await input.fill("no such name, surely");
    if (await rows.count()) say("searching hides nothing");
    await input.fill("");
    if (!await rows.count()) say("an empty search shows nothing");
    seen.searches++;
  }
  const sort = page.locator("th button").first();
  if (await sort.count()) {
    await sort.click();
    if (!await page.locator("th[aria-sort]").count()) say("headings do not sort");
  }
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForTimeout(50);
  await plots(page, say, "dark");
  await page.emulateMedia({ media: "print", colorScheme: "light" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await plots(page, say, "print");
  await page.emulateMedia({ media: "screen" });
  await broken(page, say, "wide");
  for (const width of [1400, 800, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await page.waitForTimeout(250);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) say(`of ${width} pixels it is ${wide} wide`);
    seen.widths = (seen.widths ?? 0) + 1;
  }
  await plots(page, say, "phone");
  await broken(page, say, "phone");
  await page.evaluate(() => document.querySelectorAll("figure details").forEach(details => details.open = true));
  await page.waitForTimeout(100);
  const silent = await page.evaluate(() => [...document.querySelectorAll(".scroll")].filter(scroll =>
    scroll.scrollWidth > scroll.clientWidth + 1 === scroll.previousElementSibling.matches(".more[hidden]")).length);
  if (silent) say(`${silent} tables that scroll do not say so, or the other way round`);
  await context.close();
  seen.pages++;
}
// Two pages at a time: one waits for frames while the other computes.
const queue = [...pages];
await Promise.all([1, 2].map(async () => { while (queue.length) await look(queue.shift()); }));
await browser.close();
complaints.forEach(line => console.log(line));
console.log(JSON.stringify(seen));
process.exit(complaints.length ? 1 : 0);
