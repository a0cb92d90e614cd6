// How quick it is, on loopback and in this browser.
import assert from "node:assert/strict";

const MOST_PAINT_MS = 100;
const MOST_FRAME_MS = 50;
const TRIES = 5;

/** Watches long frames, and how long scripts and layout kept them. */
function watchFrames() {
  window.frames_ = [];
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.frames_.push(duration);
  }).observe({ type: "long-animation-frame" });
}

async function longest(page, during) {
  await page.evaluate(watchFrames);
  await during();
  await page.waitForTimeout(200);
  return page.evaluate(() => Math.round(Math.max(0, ...window.frames_)));
}

export const speedSteps = [
  {
    name: `the first paint comes within ${MOST_PAINT_MS} ms`,
    run: async ({ all, open }) => {
      const { url } = await all();
      const paints = [];
      for (let tries = 0; tries < TRIES; tries += 1) {
        const visitor = await (await open(url)).loaded();
        const paint = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
        await visitor.page.waitForFunction(paint);
        paints.push(Math.round(await visitor.page.evaluate(paint)));
        await visitor.leave();
      }
      const best = Math.min(...paints);
      assert.ok(best <= MOST_PAINT_MS, `${paints} ms`);
      return `${paints.join(", ")} ms`;
    },
  },
  ...[
    ["coloured tokens", true],
    ["Markdown", false],
  ].map(([as, coloured]) => ({
    name: `2,000 tokens at 4,000 a second as ${as}: no frame above ${MOST_FRAME_MS} ms`,
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url)).loaded();
      await visitor.page.setChecked("#coloured", coloured);
      const frame = await longest(visitor.page, () => visitor.ask("fast 2000"));
      const speed = await visitor.text(".numbers div:nth-child(2) dd");
      await visitor.leave();
      assert.ok(frame <= MOST_FRAME_MS, `${frame} ms`);
      return `longest ${frame === 0 ? `under ${MOST_FRAME_MS}` : frame} ms, ${speed} tokens a second shown`;
    },
  })),
  {
    name: "10,000 tokens of conversation stay usable",
    long: true,
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url)).loaded();
      const { page } = visitor;
      for (let turns = 0; turns < 5; turns += 1) await visitor.ask("fast 2000");
      const frame = await longest(page, () => visitor.ask("fast 500"));
      const toggle = await longest(page, () => page.setChecked("#coloured", false));
      await visitor.leave();
      assert.ok(frame <= 2 * MOST_FRAME_MS, `${frame} ms while more comes`);
      return `longest frame while more comes ${frame || "under 50"} ms, on changing to Markdown ${toggle} ms`;
    },
  },
];
