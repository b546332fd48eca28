// Opens a report of several experiments in Chromium as people do: large and small, light and dark, with mouse, touch and keyboard alone.
// Exits with 1 and says what is wrong.
//   node check.js REPORT CHROMIUM        (axe-core and playwright-core beside it: npm ci)
//   node check.js PAGE CHROMIUM read     any other page, which is only read
'use strict';
const fs = require('fs');
const path = require('path');
const { pathToFileURL } = require('url');
const { chromium } = require('playwright-core');

const [,, report, program, only] = process.argv;
const HASHES = only ? [''] : ['', '#show=gigabit&beside=lab-100mbit&hide=ideal&from=5&to=12'];
const places = program.includes('/') ? [program] : process.env.PATH.split(':').map((folder) => path.join(folder, program));
const executablePath = places.find((place) => fs.existsSync(place));
const url = pathToFileURL(path.resolve(report)).href;
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const OPTIONS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const wrong = [];

function expect(what, holds, seen) {
  if (!holds) { wrong.push(what + (seen === undefined ? '' : ': ' + JSON.stringify(seen))); }
}

// A page of which each message and each request to elsewhere is wrong.
async function open(browser, options, hash) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on('console', (message) => wrong.push('console: ' + message.text()));
  page.on('pageerror', (error) => wrong.push('error: ' + error.message));
  page.on('request', (request) => expect('loads something', /^(file|data):/.test(request.url()), request.url()));
  await page.goto(url + (hash || ''));
  return page;
}

const address = (page) => page.evaluate('decodeURIComponent(location.hash)');
const shown = (page) => page.$$eval('article:not([hidden])', (all) => all.map((one) => one.dataset.name));
const plot = 'article:not([hidden]) .plot[data-end]';
const part = (page) => page.$$eval('article:not([hidden]) .zoomer input', (all) => all.map((one) => parseFloat(one.value)));
const chosen = (width, of) => width < of * 0.9 && width > 0;

async function accessible(browser, viewport, colorScheme, hash) {
  const name = viewport.width + ' px, ' + colorScheme + ' ' + hash;
  // The page's policy would keep out what looks at it.
  const page = await open(browser, { viewport, colorScheme, bypassCSP: true }, hash);
  for (const all of [false, true]) {
    if (all) { await page.$$eval('details', (found) => found.forEach((one) => { one.open = true; })); }
    await page.evaluate(axe);
    const found = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
    for (const violation of found.violations) {
      wrong.push(name + ': axe: ' + violation.id + ' at ' + violation.nodes.map((node) => node.target.join(' ')).slice(0, 3).join(', '));
    }
    const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    expect(name + ': wider than the screen by px', wide <= 0, wide);
  }
  const silent = await page.$$eval('.scroll', (frames) => frames.filter((frame) => frame.scrollWidth > frame.clientWidth + 2
    && !/more columns/.test(frame.previousElementSibling.textContent)).length);
  expect(name + ': tables that scroll and do not say so', silent === 0, silent);
  await page.context().close();
}

async function tabTo(page, selector) {
  for (let presses = 0; presses < 200; presses++) {
    await page.keyboard.press('Tab');
    if (await page.evaluate((selector) => document.activeElement.matches(selector), selector)) { return; }
  }
  throw new Error('no key leads to ' + selector);
}

async function byKeyboard(browser) {
  const page = await open(browser, { viewport: { width: 1440, height: 1000 } });
  const names = await page.$$eval('[data-show]', (all) => all.map((one) => one.dataset.show));
  const last = names[names.length - 1];
  await tabTo(page, '[data-hide=' + JSON.stringify(last) + ']');
  await page.keyboard.press('Space');
  expect('a hidden experiment has no bar', await page.locator('.row[data-of=' + JSON.stringify(last) + ']').isHidden());
  await tabTo(page, '.word');
  await page.keyboard.press('Enter');
  expect('a word is explained', await page.locator('.meaning:popover-open').isVisible());
  await page.keyboard.press('Escape');
  await tabTo(page, '#beside');
  await page.keyboard.press('End');
  await tabTo(page, '[data-show=' + JSON.stringify(names[1]) + ']');
  await page.keyboard.press('Enter');
  expect('two side by side', JSON.stringify(await shown(page)) === JSON.stringify([names[1], last]), await shown(page));
  const boxes = await page.$$eval('article:not([hidden])', (all) => all.map((one) => one.getBoundingClientRect().left));
  expect('beside each other', boxes[0] !== boxes[1], boxes);
  const whole = (await part(page))[1];
  await tabTo(page, plot);
  await page.keyboard.press('+');
  await page.keyboard.press('+');
  await page.keyboard.press('ArrowRight');
  const [from, to, otherFrom, otherTo] = await part(page);
  expect('keys zoom', chosen(to - from, whole), [from, to, whole]);
  expect('both have one axis', from === otherFrom && to === otherTo, [from, to, otherFrom, otherTo]);
  const there = await address(page);
  expect('the address says it', [names[1], last, 'from=', 'hide='].every((word) => there.includes(word)), there);
  await page.reload();
  expect('a link leads to the same', JSON.stringify(await part(page)) === JSON.stringify([from, to, from, to]), await part(page));
  await tabTo(page, plot);
  await page.keyboard.press('0');
  expect('0 shows all', (await part(page))[1] === whole, await part(page));
  await page.context().close();
}

async function byMouse(browser) {
  const page = await open(browser, { viewport: { width: 1440, height: 1000 } });
  const whole = (await part(page))[1];
  await page.locator(plot).scrollIntoViewIfNeeded();
  const box = await page.locator(plot).boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 44, { steps: 4 });
  await page.mouse.move(box.x + box.width * 0.5, box.y + 44, { steps: 4 });
  await page.mouse.up();
  const [from, to] = await part(page);
  expect('a drag chooses a part', from > 0 && chosen(to - from, whole), [from, to]);
  const bar = await page.locator(plot + ' .lane span').first().evaluate((one) => one.getBoundingClientRect().width);
  await page.dblclick(plot, { position: { x: box.width / 2, y: 10 } });
  const small = await page.locator(plot + ' .lane span').first().evaluate((one) => one.getBoundingClientRect().width);
  expect('bars grow with the zoom', bar > small * 1.5, [bar, small]);
  expect('a double click shows all', (await part(page))[1] === whole, await part(page));
  await page.context().close();
}

async function byTouch(browser) {
  const page = await open(browser, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const whole = (await part(page))[1];
  await page.locator(plot).scrollIntoViewIfNeeded();
  const box = await page.locator(plot).boundingBox();
  const finger = await page.context().newCDPSession(page);
  const touch = (type, x) => finger.send('Input.dispatchTouchEvent', {
    type, touchPoints: type === 'touchEnd' ? [] : [{ x: box.x + box.width * x, y: box.y + 40 }],
  });
  await touch('touchStart', 0.4);
  for (const x of [0.45, 0.5, 0.55, 0.6]) { await touch('touchMove', x); }
  await touch('touchEnd');
  const [from, to] = await part(page);
  expect('a finger chooses a part', from > 0 && chosen(to - from, whole), [from, to]);
  // While the last movement still rolls out, Chromium takes a tap for its end.
  for (let taps = 0; taps < 5 && (await address(page)).includes('from='); taps++) {
    await page.locator('article:not([hidden]) [data-do=all]').tap();
    // Not `waitForFunction`: it evaluates a text in the page, which the page's policy forbids.
    for (let waits = 0; waits < 40 && (await address(page)).includes('from='); waits++) { await page.waitForTimeout(50); }
  }
  expect('a button shows all', (await part(page))[1] === whole, await part(page));
  await page.context().close();
}

// The five questions of docs/replay.md, from what stands on the page. What the answers have to be is worked out from the numbers beside it.
async function fiveQuestions(browser) {
  const read = (...names) => JSON.parse(fs.readFileSync(path.join(path.dirname(report), ...names), 'utf8'));
  const experiments = read('summary.json').experiments;
  const page = await open(browser, { viewport: { width: 1440, height: 1000 } });
  // Numbers of four digits and more have spaces in them.
  const plain = (text) => text.replace(/(\d)[\s\u00a0\u202f](?=\d{3})/g, '$1').replace(/\u00a0/g, ' ');
  const text = async (selector) => plain(await page.$eval(selector, (one) => one.textContent));
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const of = (one, kind) => sum(one.critical_path.filter((share) => share.kind === kind).map((share) => share.seconds));
  const percent = (share) => (100 * share).toFixed(1) + '%';
  const words = { network: 'the network', think: 'computing and disks', 'hidden-work': 'work on bytes that wait', 'timer-wait': 'heartbeats', 'timer-pause': 'pauses of timers',
    slot: 'containers', outside: 'causes that are not in the trace' };
  const labels = { network: 'network', think: 'computing, disks', 'hidden-work': 'work while bytes wait', 'timer-wait': 'waiting for a heartbeat', 'timer-pause': "a timer's pause",
    slot: 'waiting for a container', outside: 'cause not in the trace' };

  // A logarithmic axis has no 0: transfer times begin at the shortest one.
  const zeros = await page.$$eval('svg text', (texts) => texts.map((text) => text.textContent).filter((text) => /^0 ?(ns|µs|us)$/.test(text)));
  const axes = await page.$$eval('svg text', (texts) => texts.filter((text) => /(ns|µs)$/.test(text.textContent)).length);
  expect('no axis of transfer times begins with 0', zeros.length === 0 && axes > 0, [zeros, axes]);

  // What limits the job: the first sentence.
  const faster = (a, b) => a.job_time_s < b.job_time_s || (a.job_time_s === b.job_time_s && a.fabric === 'ideal');
  const best = experiments.reduce((a, b) => (faster(b, a) ? b : a));
  const most = Object.keys(words).reduce((a, b) => (of(best, b) > of(best, a) ? b : a));
  const first = await text('.headline h1');
  const limit = 'waits for ' + words[most] + ' (' + percent(of(best, most) / best.job_time_s) + ')';
  expect('what limits the job', first.includes(limit) && first.includes('(' + best.name + ')'), [first, limit]);

  // Which fabric is enough: the second one.
  const second = await text('.headline .lead');
  const [enough, slower] = second.split('Slower: ');
  for (const one of experiments.filter((one) => one.name !== best.name)) {
    const part = one.job_time_s <= 1.05 * best.job_time_s ? enough : slower;
    expect('whether ' + one.name + ' is enough', (part || '').includes(' ' + one.name + ' (') || (part || '').startsWith(one.name + ' ('), second);
    expect(one.name + ' once', second.split(one.name + ' (').length === 2, second);
  }

  let lossy = 0;
  for (const one of experiments) {
    const article = await text('article[data-name=' + JSON.stringify(one.name) + ']');
    const detail = read(one.name, 'detail.json');
    // Where a packet was lost: what stands over the links, and each link's own line.
    const lost = detail.links.filter((link) => link.drops > 0).sort((a, b) => b.drops - a.drops);
    lossy += lost.length > 0;
    for (const link of lost.slice(0, 4)) {
      expect(one.name + ': where a packet was lost', article.includes(link.name.replace('->', ' → ') + ' (' + link.drops + ')'), link.name);
    }
    expect(one.name + ': that none was lost', (one.drops === 0) === article.includes('No packet was lost in the network.'), one.drops);
    const marked = await page.$$eval('article[data-name=' + JSON.stringify(one.name) + '] .panel', (all) => all.filter((panel) =>
      panel.querySelector('path.lost')).map((panel) => panel.querySelector('.caption b').textContent));
    const wanted = lost.map((link) => link.name.replace('->', ' → '));
    expect(one.name + ': when a packet was lost', marked.every((name) => wanted.includes(name)) && (lost.length === 0) === (marked.length === 0), [marked, wanted]);

    // Which task is last, and why.
    const last = detail.tasks.filter((task) => task.simulated.finish !== null).reduce((a, b) => (b.simulated.finish >= a.simulated.finish ? b : a));
    expect(one.name + ': the last task', article.includes('The last to end is ' + last.attempt + ' on ' + last.host + ', at '), last);
    const waits = {};
    for (const piece of detail.path) {
      const seconds = Math.min(piece.to_s, last.simulated.finish) - Math.max(piece.from_s, last.simulated.start);
      const what = piece.what + ' (' + labels[piece.kind] + ')';
      if (seconds > 0) { waits[what] = (waits[what] || 0) + seconds; }
    }
    const why = Object.keys(waits).reduce((a, b) => (waits[b] > waits[a] ? b : a));
    expect(one.name + ': why it is last', article.includes('the job waited longest for ' + why + ', '), why);

    // What twice the CPU would bring: at most half of what the critical path computes.
    const saved = '−' + percent((of(one, 'think') + of(one, 'hidden-work')) / 2 / one.job_time_s) + 'at most, with twice the CPU';
    expect(one.name + ': what twice the CPU would bring', article.includes(saved), saved);
  }
  expect('an experiment that loses packets', lossy > 0, lossy);
  await page.context().close();
}

(async () => {
  const browser = await chromium.launch({ executablePath, args: OPTIONS });
  try {
    for (const viewport of [{ width: 1440, height: 1000 }, { width: 390, height: 844 }]) {
      for (const scheme of ['light', 'dark']) {
        for (const hash of HASHES) { await accessible(browser, viewport, scheme, hash); }
      }
    }
    if (!only) {
      await byKeyboard(browser);
      await byMouse(browser);
      await byTouch(browser);
      await fiveQuestions(browser);
    }
  } finally {
    await browser.close();
  }
  wrong.forEach((line) => console.log(line));
  process.exit(wrong.length ? 1 : 0);
})().catch((error) => { console.log(error.stack); process.exit(1); });
